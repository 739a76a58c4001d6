"""`Device`: a backend and a feature level, and what they accept."""

from __future__ import annotations

from typing import TypeVar

from anydml.core._json import short_repr
from anydml.core._literals import OutOfRange
from anydml.core.errors import DeviceError, Violation
from anydml.core.levels import LATEST, FeatureLevel
from anydml.devices.backends import backend_named, cuda
from anydml.devices.operators import Operator, checked_kind
from anydml.graphs.check import minimum_level, violations
from anydml.graphs.compiled import CompiledGraph
from anydml.graphs.desc import GraphDesc
from anydml.ops._descriptor import Descriptor

Kind = TypeVar("Kind", bound=Descriptor)


class Device:
    """Where operators run, and the feature level that they are checked against.

    Parameters
    ----------
    kind : str
        ``"cpu"``; ``"onnxruntime"``, where ONNX Runtime runs what operators calculate on the CPU
        (extra ``onnxruntime``); ``"cuda"`` or ``"cuda:1"``, a GPU by its number; ``"xla"``, which
        compiles what operators calculate for JAX's default device, or ``"xla:cpu"`` and
        ``"xla:cuda"`` for that of a platform (extra ``xla``); ``"reference"``, which runs every
        operator by its reference implementation, slow and obvious; or ``"auto"``, the one that has
        every operator and is fast: the CPU so far.
    feature_level : FeatureLevel or str
        As ``"5_0"``; the latest by default.

    Raises
    ------
    DeviceError
        A device that this machine or this installation does not have.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.Device("cpu", feature_level="3_0")
    Device('cpu', feature_level='3_0')
    """

    def __init__(self, kind: str = "auto", *, feature_level: FeatureLevel | str = LATEST) -> None:
        if not isinstance(kind, str):
            raise DeviceError(f"kind: expected a name such as 'cpu', got {short_repr(kind)}")
        self.kind, self.backend = backend_named(kind)
        self.feature_level = FeatureLevel.parse(feature_level)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device):
            return NotImplemented
        return (self.kind, self.feature_level) == (other.kind, other.feature_level)

    def __hash__(self) -> int:
        return hash((self.kind, self.feature_level))

    def __repr__(self) -> str:
        return f"Device({self.kind!r}, feature_level={self.feature_level.suffix!r})"

    def check(self, desc: Descriptor | GraphDesc) -> list[Violation]:
        """Every rule that an operator or graph breaks on this device; empty when it is good.

        Of a graph at most 1,000 are returned, each with the name of its node.

        Examples
        --------
        >>> import anydml as dml
        >>> tensor = dml.TensorDesc("FLOAT64", (4,))
        >>> desc = dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
        >>> print(dml.Device("cpu", feature_level="3_0").check(desc)[0])  # doctest: +ELLIPSIS
        SPLIT.InputTensor.DataType: expected one of ... (FLOAT64 from 4_1), got FLOAT64
        """
        if isinstance(desc, GraphDesc):
            return violations(desc, self.feature_level)
        return checked_kind(desc).violations(self.feature_level)

    def minimum_feature_level(self, desc: Descriptor | GraphDesc) -> FeatureLevel | None:
        """The lowest feature level that accepts an operator or graph, or None when none does.

        Examples
        --------
        >>> import anydml as dml
        >>> tensor = dml.TensorDesc("FLOAT64", (4,))
        >>> desc = dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
        >>> dml.Device("cpu").minimum_feature_level(desc).suffix
        '4_1'
        """
        if isinstance(desc, GraphDesc):
            return minimum_level(desc)
        return checked_kind(desc).minimum_level()

    def create_operator(self, desc: Kind, *, out_of_range: OutOfRange = "raise") -> Operator[Kind]:
        """An operator for the descriptor, after checking every rule of its page.

        Parameters
        ----------
        desc : Descriptor
            As `TopK1`.
        out_of_range : str
            For the gathers: ``"raise"``, or ``"clamp"`` for the behaviour that the page of GATHER
            documents for invalid indices.

        Raises
        ------
        InvalidDescriptorError
            The descriptor breaks rules; ``violations`` has all of them.
        """
        return Operator(desc, self, out_of_range)  # which checks it

    def compile_graph(
        self, desc: GraphDesc, *, allow_half_precision: bool = False
    ) -> CompiledGraph:
        """A graph that is ready to run, after checking every rule.

        Parameters
        ----------
        desc : GraphDesc
            As `GraphBuilder.build` makes it.
        allow_half_precision : bool
            Whether products of FLOAT32 may have the precision of FLOAT16, with the range and sums
            of FLOAT32: ``DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION``. Makes matrix
            products and convolutions on GPUs faster (TF32); other devices ignore it.

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
        >>> x = graph.input("x", dml.TensorDesc("FLOAT32", (3,)))
        >>> compiled = dml.Device("cpu").compile_graph(graph.build(y=graph.activation_relu(x)))
        >>> compiled(x=dml.cast([-1, 0, 2], "float32"))
        {'y': array([0., 0., 2.], dtype=float32)}
        """
        return CompiledGraph(desc, self, allow_half_precision)  # which checks it


def synchronize() -> None:
    """Wait until the work of all calls on GPUs has run.

    On the CPU there is nothing to wait for.

    Raises
    ------
    IndexOutOfRangeError
        A call on a GPU had an index that points outside its axis; the message names the call.
    DeviceError
        A GPU failed.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.synchronize()
    """
    cuda.synchronize()
