"""Arrays in memory as a library: NumPy's, and those of other libraries by their memory.

Here, calls run that no integration takes, that write to ``out=``, or that an integration's native
call declines: `infer` of the operator, then a kernel of a backend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Final

import numpy as np

from anydml.core._json import short_repr
from anydml.core.errors import AllocationError, ArgumentError, ArgumentTypeError
from anydml.core.program import IndexUse
from anydml.devices.backends import kernels_for
from anydml.devices.backends._sequence import index_error
from anydml.devices.backends.cpu import know_type
from anydml.devices.binding import first_overlap
from anydml.devices.threads import get_num_threads
from anydml.functions import _arguments
from anydml.functions._function import Attributes, Call, FunctionSpec
from anydml.functions._infer import OperatorClass
from anydml.libraries import as_operand, bump_version, check_dtype, promoted
from anydml.libraries._base import Array, Wrap
from anydml.libraries._device import DeviceArray
from anydml.libraries._types import as_type, to_counterpart, type_of


class Memory:
    """The library of one call (`anydml.functions._library.Library`).

    It writes to `out`, the arrays that the user passes, or to new ones.
    """

    __slots__ = (
        "_first", "_is_scalar", "_operands", "_out", "_scratch", "_spec", "_targets", "_wrap",
    )  # fmt: skip

    knows_modes = in_memory = True

    def __init__(self, spec: FunctionSpec, out: Any) -> None:
        self._spec = spec
        self._out = out
        self._first: Any = None  # the user's array that decides the kind of the results
        self._wrap: Wrap = to_counterpart
        self._operands: Sequence[Array]
        self._is_scalar: bool
        self._targets: list[Array]
        self._scratch: Array | None = None  # the latest intermediate result

    # ---- operands and arguments

    def array(self, value: Any, name: str, like: Array | None = None) -> Array:
        """Return an array of the same memory; numbers and lists go where `like` is."""
        array, wrap = as_operand(value, name)
        if like is not None:
            return _arguments.to_device_of(array, like)
        if self._first is None:
            self._first, self._wrap = value, wrap
        return array

    def indices(self, value: Any, like: Array, name: str = "indices") -> Array:
        array, wrap = _arguments.index_operand(value, name)
        if self._first is None:
            self._first, self._wrap = value, wrap
        return _arguments.to_device_of(array, like) if _arguments.is_untyped(value) else array

    def same_type(self, value: Any, like: Array, name: str, like_name: str = "x") -> Array:
        array = _arguments.same_type(as_operand(value, name)[0], value, name, like, like_name)
        return _arguments.number_to_device_of(array, like)

    def promoted(self, values: Sequence[Any], name: str) -> list[Array]:
        parts = [self.array(value, f"{name}[{i}]") for i, value in enumerate(values)]
        kind = promoted(values[0], [part.dtype for part in parts], name)
        return [
            part if part.dtype == kind else as_type(part, kind, f"{name}[{i}]")
            for i, part in enumerate(parts)
        ]

    def value_type(self, dtype: Any) -> np.dtype[Any]:
        kind = _arguments.type_named(dtype)
        know_type(dtype, kind)
        if self._out is None:
            check_dtype(self._first, kind, "dtype")
        return kind

    def index_type(self, dtype: Any, x: Array, sizes: Sequence[int]) -> np.dtype[Any]:
        """Return the type of ``out=``, or the one that the first array's library indexes with."""
        out, name = self._out, "out"
        if not self._spec.is_single:
            position = self._spec.results.index("index_dtype")
            out, name = self._outs(len(self._spec.results))[position], f"out[{position}]"
        return _arguments.result_indices(dtype, self._first, sizes, out, name)

    # ---- operations

    broadcast_shapes = staticmethod(np.broadcast_shapes)

    def broadcast_to(self, x: Array, shape: Sequence[int]) -> Array:
        if isinstance(x, DeviceArray):
            return x.broadcast_to(tuple(shape))
        return np.broadcast_to(x, tuple(shape))

    def reshape(self, x: Array, shape: Sequence[int]) -> Array:
        """Return the same elements, in other memory if they cannot stay where they are."""
        if tuple(shape) == (-1,):
            return self._made(partial(_arguments.ravel, x))
        return x.reshape(tuple(shape))

    def as_numbers(self, x: Array) -> Array:
        return x  # `run` shows bools to kernels as numbers

    as_bools = as_numbers

    def full(self, shape: Sequence[int], value: Any, like: Array) -> Array:
        number = _arguments.number_to_device_of(np.asarray(value, like.dtype), like)
        return self.broadcast_to(number, shape)

    def is_nonzero(self, x: Array) -> Array:
        if isinstance(x, DeviceArray):
            raise ArgumentTypeError(
                f"x: expected real numbers for an array on a GPU, got {x.dtype}"
            )
        with np.errstate(invalid="ignore"):  # a signalling NaN is one that is not zero
            return self._made(lambda: np.asarray(x != 0))

    def kept(self, x: Array) -> Array:
        # Other threads may change the user's indices between two kernels.
        return x if isinstance(x, DeviceArray) else self._made(x.copy)

    def _made(self, make: Callable[[], Array]) -> Array:
        """Return a temporary array, unless it is too large."""
        try:
            return make()
        except (MemoryError, ValueError):  # "array is too big"
            raise AllocationError(self._spec.name, None, "scratch") from None

    def wide_types(self) -> AbstractContextManager[Any]:
        return nullcontext()

    # ---- calls

    def results(self, call: Call) -> Any:
        """Run a call, and return its results as the user gets them."""
        spec = self._spec
        operands, attributes, self._is_scalar = call
        self._operands = operands
        spec.check(operands, attributes)
        for i, check in spec.value_checks.items() if spec.value_checks else ():
            if not isinstance(operands[i], DeviceArray):
                check(operands[i])
        spec.program(self, spec, operands, attributes)
        if spec.is_single and self._out is None:
            return self._wrap(self._targets[0])
        results = []
        for target, out in zip(self._targets, self._outs(len(self._targets)), strict=True):
            if out is not None:
                bump_version(out)
            results.append(self._wrap(target) if out is None else out)
        return spec.finished(results)

    def run(
        self,
        operator: OperatorClass,
        operands: Sequence[Array],
        outputs: Sequence[tuple[tuple[int, ...], Any]],
        attributes: Attributes,
        axes: Sequence[int],
        scratch: bool,
    ) -> list[Array]:
        """Run an operator's kernel, into the user's arrays if the results are the call's."""
        if scratch:
            inputs = [("x", operands[0])]
            ((shape, dtype),) = outputs
            self._scratch = _arguments.output(
                self._spec.name, None, "", shape, dtype, inputs, what="scratch"
            )
            results = [self._scratch]
        elif self._out is None and operands[0] is self._scratch:  # a scatter writes over it
            results = [self._scratch]
            shape = () if self._is_scalar else self._scratch.shape
            self._targets = [self._scratch.reshape(shape)]
        else:
            results = self._make(outputs)
        private = scratch or self._out is None
        sources, targets = self._seen(operands, outputs, results)
        kernels = kernels_for([*sources, *targets])
        bad = kernels.execute(
            operator.KERNEL, sources, targets, attributes, private, get_num_threads()
        )
        if bad >= 0:
            sizes = tuple(sources[0].shape[axis] for axis in axes)
            axis, size = IndexUse("indices", tuple(axes), sizes).axis_and_size(bad)
            raise index_error(f"{operator.KERNEL}: indices", sources[1], bad, axis, size)
        return results

    def _seen(
        self, operands: Sequence[Array], outputs: Sequence[Any], results: Sequence[Array]
    ) -> tuple[Sequence[Array], Sequence[Array]]:
        """Return inputs and outputs as kernels see them."""
        if self._is_scalar:
            results = [y.reshape(shape) for y, (shape, _) in zip(results, outputs, strict=True)]
        for x in (operands[0], *results):
            if x.dtype == _BOOL:
                return _as_numbers(operands), _as_numbers(results)
        return operands, results

    def run_measured(
        self,
        operator: OperatorClass,
        x: Array,
        attributes: Attributes,
        kind: Any,
        size: int,
        fill: int,
    ) -> Array:
        """Run a kernel whose output's size the data decide, or make it `size` rows."""
        columns = attributes["columns"]
        _arguments.check_element_count([("x", x)])

        rows = None if size < 0 else self._make([((size, columns), kind)])[0]

        def make(count: int) -> Array:
            shape = (count, columns)
            if rows is None:
                found = self._make([(shape, kind)])[0]
            else:
                found = _arguments.output(self._spec.name, None, "", shape, kind, [("x", x)])
            kernels_for([x, found])  # in the same place
            return found

        (source,) = _as_numbers([x])
        kernels = kernels_for([source])
        found = kernels.run_measured(operator.KERNEL, source, attributes, make, get_num_threads())
        if rows is None:
            return found
        _fill_rows(rows, found, np.asarray(fill, kind))
        return rows

    def _outs(self, count: int) -> Sequence[Any]:
        """Return the user's array for each result; None for one that is to be allocated."""
        if self._out is None or self._spec.is_single:
            return (self._out,) * count
        names = ", ".join(self._spec.result_names) or "one for each part"
        if not isinstance(self._out, list | tuple):
            raise ArgumentTypeError(
                f"out: expected a tuple of {count} arrays ({names}), got {short_repr(self._out)}"
            )
        outs = tuple(self._out)  # the list may change while its members are checked
        if len(outs) != count:
            raise ArgumentError(f"out: expected {count} arrays ({names}), got {len(outs)}")
        return outs

    def _make(self, outputs: Sequence[tuple[tuple[int, ...], Any]]) -> list[Array]:
        """Make the results of the call: new arrays, or the user's after checking them."""
        spec, is_scalar = self._spec, self._is_scalar
        operands = [(spec.operand_name(i), x) for i, x in enumerate(self._operands)]
        if spec.is_single:
            ((shape, dtype),) = outputs
            shape = () if is_scalar else shape
            result = _arguments.output(
                spec.name, self._out, "out", shape, dtype, operands, spec.writes_over
            )
            self._targets = [result]
            return self._targets
        outs = self._outs(len(outputs))
        self._targets = []
        for i, ((shape, dtype), out) in enumerate(zip(outputs, outs, strict=True)):
            what = f"slab {i}" if spec.lists_results else f"the {spec.result_names[i]}"
            name, own = f"out[{i}]", () if is_scalar else shape
            result = _arguments.output(spec.name, out, name, own, dtype, operands, what=what)
            self._targets.append(result)
            if spec.result_names:
                operands.append((name, result))
        if self._out is not None and spec.lists_results:
            pair = first_overlap(self._targets, ())
            if pair is not None:
                raise ArgumentError(
                    f"out[{pair[0]}]: expected memory that does not overlap out[{pair[1]}], "
                    "got an overlap"
                )
        return self._targets


_BOOL: Final = np.dtype(np.bool_)


def _as_numbers(arrays: Sequence[Array]) -> list[Array]:
    """View bools as the numbers that they are in memory."""
    return [x.view(np.uint8) if x.dtype == np.bool_ else x for x in arrays]


def _fill_rows(rows: Any, found: Any, fill: Any) -> None:
    """Write the first rows that were found, as many as fit, and a number to the others."""
    count = min(found.shape[0], rows.shape[0])
    if not isinstance(rows, DeviceArray):
        rows[:count] = found[:count]
        rows[count:] = fill
        return
    others = rows.laid_out((rows.shape[0] - count, rows.shape[1]), rows.dtype, rows.strides)
    others.address += count * rows.strides[0]
    number: Any = _arguments.number_to_device_of(fill, rows)  # type: ignore[arg-type]
    first = (count, rows.shape[1])
    _arguments.copy_on_device(
        found.laid_out(first, found.dtype, found.strides),
        rows.laid_out(first, rows.dtype, rows.strides),
    )
    _arguments.copy_on_device(number.broadcast_to(others.shape), others)


def on_memory(spec: FunctionSpec, arguments: tuple[Any, ...], out: Any) -> Any:
    """Call a function on arrays in memory, with the user's arguments."""
    lib = Memory(spec, out)
    return lib.results(spec.prepare(lib, *arguments))


def call_on_memory(
    spec: FunctionSpec, operands: Sequence[Any], attributes: Mapping[str, Any], out: Any = None
) -> Any:
    """Call a function on arrays in memory, with normalized attributes."""
    lib = Memory(spec, out)
    arrays = spec.as_arrays(lib, *([operands] if spec.lists_operands else operands))
    known = dict(attributes)
    for attribute in spec.attributes:
        if attribute.name == "index_dtype":
            known["index_dtype"] = lib.index_type(attributes["index_dtype"], arrays[0], ())
        elif attribute.kind == "type":
            known[attribute.name] = type_of(_arguments.type_name(attributes[attribute.name]))
    return lib.results((arrays, known, False))
