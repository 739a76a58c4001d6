"""`CompiledGraph`: a graph that is ready to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Never, overload
from uuid import uuid4

from anydml.core._json import short_repr, unnamed_error
from anydml.core.errors import ArgumentTypeError, InvalidDescriptorError
from anydml.devices.dispatch import Compiled, Point, allowing_half
from anydml.graphs.check import violations
from anydml.graphs.desc import GraphDesc
from anydml.graphs.lower import NAME, Lowered, lower

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anydml.devices._results import Other, Plain
    from anydml.devices.device import Device


class CompiledGraph(Compiled):
    """A graph that is ready to run; may be dispatched from several threads at once.

    Made by `Device.compile_graph`. A copy, and one that comes back from a pickle, owns what this
    one owns. A process checks and compiles all that come from one graph once.

    Parameters
    ----------
    desc : GraphDesc
        The graph.
    device : Device
        Where it runs, and whose feature level decides.
    allow_half_precision : bool, optional
        As `Device.compile_graph` takes it.

    Raises
    ------
    InvalidDescriptorError
        The graph breaks rules; ``violations`` has all of them.
    MissingKernelError
        The device has no kernel for a node, which the message names.

    Examples
    --------
    >>> import anydml as dml
    >>> graph = dml.GraphBuilder()
    >>> x = graph.input("x", dml.TensorDesc("FLOAT32", (2,)))
    >>> w = graph.input("w", dml.TensorDesc("FLOAT32", (2,), flags="OWNED_BY_DML"))
    >>> compiled = dml.Device("cpu").compile_graph(graph.build(y=graph.multiply(x, w)))
    >>> compiled.initialize(w=dml.cast([2, 3], "float32"))
    <CompiledGraph (x, w) -> (y) on Device('cpu', feature_level='6_4')>
    >>> compiled(x=dml.cast([1, -1], "float32"))
    {'y': array([ 2., -3.], dtype=float32)}
    """

    def __init__(
        self,
        desc: GraphDesc,
        device: Device,
        allow_half_precision: bool = False,
        owned: Mapping[str, Any] | None = None,
        lowered: Lowered | None = None,
    ) -> None:
        if not isinstance(desc, GraphDesc):
            raise ArgumentTypeError(f"desc: expected a GraphDesc, got {short_repr(desc)}")
        if lowered is None:  # otherwise the caller has checked it
            if found := violations(desc, device.feature_level):
                raise InvalidDescriptorError(found)
            lowered = lower(desc)
        self._desc = desc
        self._device = device
        self._key = ""  # of its pickles; another one when it owns something else
        program = allowing_half(lowered.program, allow_half_precision)
        points = [
            Point(slot.name, slot.name, (lowered.tensors[slot.name],), False, output, (slot,))
            for slots, output in ((program.inputs, False), (program.outputs, True))
            for slot in slots
            if slot.name in lowered.tensors
        ]
        super().__init__(NAME, program, points, device.backend, owned)

    @property
    def desc(self) -> GraphDesc:
        """The graph."""
        return self._desc

    @property
    def device(self) -> Device:
        """The device that it was compiled for."""
        return self._device

    def __reduce__(self) -> tuple[Callable[..., CompiledGraph], tuple[Any, ...]]:
        self._key = self._key or uuid4().hex
        allows_half = self.program.allows_half
        return _restored, (self._key, self._desc, self._device, allows_half, self._owned)

    def __repr__(self) -> str:
        names = [", ".join(point.name for point in side) for side in (self._inputs, self._outputs)]
        return f"<CompiledGraph ({names[0]}) -> ({names[1]}) on {self.device!r}>"

    def _unknown(self, name: str) -> str:
        if any(name == tensor.name for tensor in self._desc.inputs):
            return f"{name}: expected nothing (no node reads it)"
        return super()._unknown(name)

    def initialize(self, /, *unnamed: Never, **bindings: Any) -> CompiledGraph:
        """Copy the OWNED_BY_DML inputs, which are not bound again.

        Parameters
        ----------
        **bindings : array or buffer
            Every input that is flagged OWNED_BY_DML, by its name.

        Returns
        -------
        CompiledGraph
            This graph. Runs that begin later use the copies.

        Raises
        ------
        BindingError
            An input that is not owned, one that is missing, or one that does not fit; the graph
            then owns what it owned before.
        """
        if unnamed:
            raise unnamed_error("initialize()", unnamed, self._owned_names)
        self._own(self._copies(bindings))
        self._key = ""
        return self

    @overload
    def __call__(self, /, **bindings: Plain) -> dict[str, NDArray[Any]]: ...
    @overload
    def __call__(self, /, **bindings: Other) -> dict[str, Other]: ...
    @overload
    def __call__(self, /, **bindings: Any) -> dict[str, Any]: ...
    def __call__(self, /, *unnamed: Any, **bindings: Any) -> dict[str, Any]:
        """Run on inputs, allocate the outputs and return them.

        Parameters
        ----------
        **bindings : array or buffer
            The inputs by name, as `dispatch` takes them.

        Returns
        -------
        dict of str to array
            The outputs by name, of the first input's kind.

        Raises
        ------
        BindingError, IndexOutOfRangeError
            As `dispatch`.
        """
        if unnamed:
            raise unnamed_error("CompiledGraph", unnamed, self._bound_names)
        return self._results(bindings)


_MOST_RESTORED: Final = 4
"""Graphs that came back from pickles and are kept compiled, the latest ones."""

_kept: Final[dict[str, CompiledGraph]] = {}
_keeping: Final = Lock()


def _restored(
    key: str, desc: GraphDesc, device: Device, allows_half: bool, owned: Mapping[str, Any]
) -> CompiledGraph:
    """The graph of a pickle, which shares what is compiled with others of this key."""
    with _keeping:
        found = _kept.pop(key, None)
    if found is None:
        found = CompiledGraph(desc, device, allows_half, owned)
        found._key = key
    with _keeping:
        _kept[key] = found
        while len(_kept) > _MOST_RESTORED:
            del _kept[next(iter(_kept))]
    shared = CompiledGraph.__new__(CompiledGraph)
    vars(shared).update(vars(found))
    return shared
