"""`TensorDesc`: DirectML's buffer tensor descriptor, its implied size and its JSON form."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from math import prod
from typing import Any

from anydml.core import _json
from anydml.core._literals import DataTypeName, TensorFlagsName
from anydml.core.dtypes import DataType
from anydml.core.enums import NamedEnum
from anydml.core.errors import (
    AllocationError,
    ArgumentError,
    ArgumentTypeError,
    InvalidDescriptorError,
    ModelError,
    Violation,
)
from anydml.core.rules import UNKNOWN, Rules, find_violations, is_known, known

MAX_DIMENSIONS = 8
MAX_ELEMENTS = 2**32 - 1

_FIELDS = (
    "data_type", "sizes", "strides", "flags", "total_tensor_size_in_bytes",
    "guaranteed_base_offset_alignment",
)  # fmt: skip

_DATA_TYPES = "one of " + ", ".join(map(str, DataType))

# Of a descriptor that is wrong anyway: a product of thousands of sizes would take hours.
_MOST_SIZES = 64

# Of the search for two elements in one place; real layouts need a handful, and a model can have
# thousands of tensors that need them all.
_MOST_STEPS = 1_000


class TensorFlags(NamedEnum):
    """``DML_TENSOR_FLAGS``: OWNED_BY_DML tensors are bound when the operator is initialised."""

    NONE = 0
    OWNED_BY_DML = 1

    @classmethod
    def prefix(cls) -> str:
        return "DML_TENSOR_FLAG_"


@dataclass(frozen=True, repr=False)
class TensorDesc:
    """A ``DML_BUFFER_TENSOR_DESC``.

    Making one checks only that its fields are of the right kind; the rules are checked, all at
    once, when an operator that uses it is checked or created.

    Parameters
    ----------
    data_type : DataType or str
        The element type: the enum, its full name or its suffix (``"FLOAT32"``).
    sizes : sequence of int
        1 to 8 sizes, each in 1..2^32 - 1, together at most 2^32 - 1 elements.
    strides : sequence of int, optional
        In elements, one for each size; 0 repeats the dimension (inputs only), larger than packed
        leaves gaps. None means packed in row-major order.
    flags : TensorFlags or str, optional
        ``"NONE"`` or ``"OWNED_BY_DML"``.
    total_tensor_size_in_bytes : int, optional
        At least `minimum_size_in_bytes` (the default), and a multiple of 4.
    guaranteed_base_offset_alignment : int, optional
        0, or a power of two no smaller than the element.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.TensorDesc("FLOAT16", (1, 1, 3, 3)).minimum_size_in_bytes
    20
    """

    data_type: DataType
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None
    _: KW_ONLY
    flags: TensorFlags
    total_tensor_size_in_bytes: int
    guaranteed_base_offset_alignment: int

    def __init__(
        self,
        data_type: DataType | DataTypeName,
        sizes: Iterable[int],
        strides: Iterable[int] | None = None,
        *,
        flags: TensorFlags | TensorFlagsName | Iterable[TensorFlagsName] = TensorFlags.NONE,
        total_tensor_size_in_bytes: int | None = None,
        guaranteed_base_offset_alignment: int = 0,
    ) -> None:
        put = object.__setattr__
        problems: list[Violation] = []

        def convert(name: str, page_name: str, parse: Any, value: Any, rule: str) -> None:
            try:
                put(self, name, parse(value))
            except (TypeError, ValueError):
                hint = DataType.did_you_mean(value) if name == "data_type" else ""
                hint = hint or _json.or_in_list(value, parse)
                got = f"{_json.short_repr(value)}{hint}"
                problems.append(Violation(f"TensorDesc.{page_name}", rule, got))

        convert("data_type", "DataType", DataType.parse, data_type, _DATA_TYPES)
        convert("sizes", "Sizes", _integers, sizes, "a sequence of at most 8 integers")
        convert("strides", "Strides", lambda v: None if v is None else _integers(v), strides,
             "a sequence of at most 8 integers, or None")  # fmt: skip
        convert("flags", "Flags", parse_flags, flags, "NONE or OWNED_BY_DML")
        convert("guaranteed_base_offset_alignment", "GuaranteedBaseOffsetAlignment", integer_of,
             guaranteed_base_offset_alignment, "an integer")  # fmt: skip
        if total_tensor_size_in_bytes is not None:
            convert("total_tensor_size_in_bytes", "TotalTensorSizeInBytes", integer_of,
                 total_tensor_size_in_bytes, "an integer or None")  # fmt: skip
        if problems:
            raise InvalidDescriptorError(problems)
        if total_tensor_size_in_bytes is None:
            put(self, "total_tensor_size_in_bytes", self.minimum_size_in_bytes)

    @classmethod
    def from_array(cls, array: Any) -> TensorDesc:
        """The descriptor of an array: its type, shape and, unless packed, its strides.

        Descriptors have no rank 0: a scalar gives the sizes ``(1,)``.

        Parameters
        ----------
        array : array_like
            Anything with ``shape`` and ``dtype``, or that `numpy.asarray` takes. Strides must be
            positive multiples of the element size (or 0).

        Raises
        ------
        ArgumentError
            The array's strides cannot be said in a descriptor.
        """
        import numpy as np

        try:
            view = np.asarray(frozen(array))
        except (TypeError, ValueError, OverflowError, RecursionError, RuntimeError) as error:
            raise ArgumentError(f"array: {error}") from error
        except MemoryError:
            raise AllocationError("array", None, f"an array of {_json.short_repr(array)}") from None
        try:
            data_type = DataType.from_numpy(view.dtype)
        except ArgumentTypeError:
            accepted = ", ".join(member.suffix for member in DataType if member.bits >= 8)
            got = _json.short_repr(array) if view.dtype.kind == "O" else view.dtype
            raise ArgumentTypeError(
                f"array: expected elements of one of {accepted}, got {got}"
            ) from None
        sizes = view.shape or (1,)
        if view.flags.c_contiguous:
            return cls(data_type, sizes)
        size = view.itemsize
        if any(stride < 0 or stride % size for stride in view.strides):
            raise ArgumentError(
                f"array: expected strides that are non-negative multiples of the element size "
                f"({size} bytes), got {view.strides}"
            )
        return cls(data_type, sizes, [stride // size for stride in view.strides])

    @property
    def dimension_count(self) -> int:
        """The page's DimensionCount."""
        return len(self.sizes) if is_known(self.sizes) else UNKNOWN

    @property
    def element_count(self) -> int:
        """Elements that the sizes make."""
        return prod(self.sizes)

    @cached_property
    def element_strides(self) -> tuple[int, ...]:
        """Strides in elements, packed ones where none are given."""
        return packed_strides(self.sizes) if self.strides is None else self.strides

    @property
    def minimum_size_in_bytes(self) -> int:
        """The smallest buffer that holds the tensor, rounded up to 4 bytes.

        Packed: the elements. Strided: up to the last element that the strides reach.
        """
        if self.strides is None:
            elements = self.element_count
        elif 0 in self.sizes:
            elements = 0
        else:
            pairs = zip(self.sizes, self.strides, strict=False)
            elements = 1 + sum((size - 1) * stride for size, stride in pairs)
        return -(-elements * self.data_type.bits // 32) * 4

    @property
    def storage(self) -> TensorDesc:
        """The tensor that is bound: this one, or for a four-bit type its bytes as UINT8.

        Each byte holds two elements, the first one in its low four bits.

        Examples
        --------
        >>> import anydml as dml
        >>> dml.TensorDesc("INT4", (3, 3)).storage
        TensorDesc('UINT8', (5,))
        """
        if self.data_type.bits >= 8:
            return self
        pairs = zip(self.sizes, self.element_strides, strict=False)
        elements = 1 + sum((size - 1) * stride for size, stride in pairs)
        return replace(self, data_type=DataType.UINT8, sizes=(-(-elements // 2),), strides=None)

    def without(self, part: str = "", index: int | None = None, *_: Any) -> TensorDesc:
        """A copy in which a part, or one size, is unknown; by default its type and sizes."""
        values = {name: getattr(self, name) for name in _FIELDS}
        if part in ("", "DataType"):
            values["data_type"] = UNKNOWN
        if part in ("", "DimensionCount"):
            values["sizes"] = UNKNOWN
        elif part == "Sizes" and is_known(self.sizes):
            values["sizes"] = tuple(
                UNKNOWN if index in (None, i) else size for i, size in enumerate(self.sizes)
            )
        return self.unchecked(values)

    def check(self, output: bool = False) -> Iterator[Violation]:
        """The tensor rules that hold for every operator; paths are relative to the tensor."""
        rules = self._size_rules(), self._stride_rules(), self._memory_rules()
        yield from find_violations(*rules, self._output_rules() if output else ())

    def _size_rules(self) -> Rules:
        if not 1 <= self.dimension_count <= MAX_DIMENSIONS:
            yield Violation("DimensionCount", f"1..{MAX_DIMENSIONS}", self.dimension_count)
        for i, size in enumerate(self.sizes):
            if size is not UNKNOWN and not 1 <= size <= _json.UINT32_MAX:
                yield Violation(f"Sizes[{i}]", "1..2^32 - 1", size)
        if self.element_count > MAX_ELEMENTS:
            yield Violation("Sizes", "at most 2^32 - 1 elements", self.element_count)

    def _stride_rules(self) -> Rules:
        if self.strides is None:
            return
        for i, stride in enumerate(self.strides):
            if stride is not UNKNOWN and not 0 <= stride <= _json.UINT32_MAX:
                yield Violation(f"Strides[{i}]", "0..2^32 - 1", stride)
        if len(self.strides) != self.dimension_count:
            noun = "stride" if self.dimension_count == 1 else "strides"
            rule = f"{self.dimension_count} {noun} (DimensionCount)"
            yield Violation("Strides", rule, len(self.strides))

    def _memory_rules(self) -> Rules:
        total = self.total_tensor_size_in_bytes
        yield self._minimum_rule()
        if total % 4 or total > _json.UINT64_MAX:
            yield Violation("TotalTensorSizeInBytes", "a multiple of 4 below 2^64", total)
        alignment, size = self.guaranteed_base_offset_alignment, self.data_type.element_size
        power = 0 < alignment <= _json.UINT32_MAX and not alignment & (alignment - 1)
        if alignment and (not power or alignment < size):
            yield Violation(
                "GuaranteedBaseOffsetAlignment",
                f"0 or a power of two of at least {max(size, 1)} (the element size), at most 2^31",
                alignment,
            )

    def _minimum_rule(self) -> Rules:
        if self._strides_fit() and self.total_tensor_size_in_bytes < self.minimum_size_in_bytes:
            rule = f"at least {self.minimum_size_in_bytes}"
            yield Violation("TotalTensorSizeInBytes", rule, self.total_tensor_size_in_bytes)

    def _output_rules(self) -> Rules:
        if self.flags is TensorFlags.OWNED_BY_DML:
            yield Violation("Flags", "NONE (only inputs can be OWNED_BY_DML)", self.flags)
        if (
            self._strides_fit()
            and self.dimension_count <= MAX_DIMENSIONS
            and self.overlaps_itself()
        ):
            rule = "strides without overlapping elements (an output)"
            yield Violation("Strides", rule, self.strides)

    def _strides_fit(self) -> bool:
        """Whether the strides are valid, and as many as sizes."""
        return self.strides is None or (
            len(self.strides) == self.dimension_count
            and all(0 <= stride <= _json.UINT32_MAX for stride in self.strides)
        )

    def overlaps_itself(self) -> bool:
        """Whether two elements share memory: not allowed for outputs."""
        if self.strides is None:
            return False
        return overlapping(self.sizes, self.strides)

    def to_json(self) -> dict[str, Any]:
        """The JSON form, with the page's field names; defaults are left out."""
        fields: dict[str, Any] = {"DataType": self.data_type.suffix, "Sizes": list(self.sizes)}
        if self.strides is not None:
            fields["Strides"] = list(self.strides)
        if self.flags is not TensorFlags.NONE:
            fields["Flags"] = self.flags.suffix
        if self.total_tensor_size_in_bytes != self.minimum_size_in_bytes:
            fields["TotalTensorSizeInBytes"] = self.total_tensor_size_in_bytes or "0"
        if self.guaranteed_base_offset_alignment:
            fields["GuaranteedBaseOffsetAlignment"] = self.guaranteed_base_offset_alignment
        return fields

    @classmethod
    def from_json(cls, value: Any) -> TensorDesc:
        """The tensor that a JSON object describes; fields may be nested under ``Desc``.

        Raises
        ------
        ModelError
            Fields are missing, of the wrong kind or out of their range: all of them at once.
        """
        fields = _json.json_object(value)
        faults = _json.Faults()
        faults.field(fields, "Type", _buffer_type, None)
        nested = next((name for name in ("Desc", "desc") if name in fields), None)
        if nested is None:
            return cls._read(fields, faults)
        inner = _json.field(fields, nested, _json.json_object)
        return _json.field(fields, nested, lambda _: cls._read(inner, faults), shown="")

    @classmethod
    def _read(cls, fields: Mapping[str, Any], faults: _json.Faults) -> TensorDesc:
        parse_field = faults.partial_field
        data_type = parse_field(fields, "DataType", DataType.read_json)
        sizes = parse_field(fields, "Sizes", _dimensions)
        count = _exactly(len(sizes)) if is_known(sizes) else _json.json_uint32
        parse_field(fields, "DimensionCount", count, None)
        strides = parse_field(fields, "Strides", _optional_strides, None)
        flags = parse_field(fields, "Flags", _json_flags, TensorFlags.NONE)
        total = parse_field(fields, "TotalTensorSizeInBytes", _total_size, None)
        alignment = parse_field(fields, "GuaranteedBaseOffsetAlignment", _json.json_uint32, 0)
        values = data_type, sizes, strides, flags, total, alignment
        known_fields: dict[str, Any] = dict(zip(_FIELDS, values, strict=True))
        faults.finish(lambda: cls.unchecked(known_fields))
        return cls(**known_fields)

    @classmethod
    def unchecked(cls, values: Mapping[str, Any]) -> TensorDesc:
        """A tensor of these values, some of which are unknown, to find violations of others."""
        tensor = object.__new__(cls)
        vars(tensor).update(values)
        if values["total_tensor_size_in_bytes"] is None:
            total = known(lambda: tensor.minimum_size_in_bytes)
            vars(tensor)["total_tensor_size_in_bytes"] = total
        return tensor

    def __repr__(self) -> str:
        parts = [repr(self.data_type.suffix), repr(self.sizes)]
        if self.strides is not None:
            parts.append(repr(self.strides))
        if self.flags is not TensorFlags.NONE:
            parts.append(f"flags={self.flags.suffix!r}")
        if self.total_tensor_size_in_bytes != self.minimum_size_in_bytes:
            parts.append(f"total_tensor_size_in_bytes={self.total_tensor_size_in_bytes}")
        if self.guaranteed_base_offset_alignment:
            alignment = self.guaranteed_base_offset_alignment
            parts.append(f"guaranteed_base_offset_alignment={alignment}")
        return f"TensorDesc({', '.join(parts)})"


def packed_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of elements in row-major order without gaps."""
    strides = [*accumulate(reversed(sizes[1:]), operator.mul, initial=1)]
    return tuple(reversed(strides[: len(sizes)]))


def overlapping(sizes: Iterable[int], strides: Iterable[int]) -> bool:
    """Whether two coordinates of a strided tensor meet in one place.

    Strides that nest (each larger than the span below it) settle nearly all cases; the rest are
    decided by searching for two coordinates with the same offset. Strides made to defeat the search
    count as overlapping.
    """
    dims = sorted((stride, size) for size, stride in zip(sizes, strides, strict=True) if size > 1)
    if any(stride == 0 for stride, _ in dims):
        return True
    span = 0
    nested = True
    for stride, size in dims:
        nested = nested and stride > span
        span += (size - 1) * stride
    if nested:
        return False
    return prod(size for _, size in dims) > span + 1 or _two_meet(tuple(dims))


@lru_cache(4096)  # every feature level asks again
def _two_meet(dims: tuple[tuple[int, int], ...]) -> bool:
    # Two coordinates meet where Σ dᵢ·strideᵢ = 0 for differences |dᵢ| < sizeᵢ, not all zero.
    # Largest stride first: what is left must be within the span of the smaller ones, which prunes.
    dims = tuple(sorted(dims, reverse=True))
    spans = [0] * (len(dims) + 1)
    for i in range(len(dims) - 1, -1, -1):
        spans[i] = spans[i + 1] + (dims[i][1] - 1) * dims[i][0]
    visited: set[tuple[int, int]] = set()
    steps = iter(range(_MOST_STEPS))

    def search(i: int, remainder: int, moved: bool) -> bool:
        if i == len(dims):
            return moved and remainder == 0
        stride, size = dims[i]
        if (i, remainder) in visited:
            return False
        below = spans[i + 1]
        # remainder + d·stride must be within ±below.
        low = max(-(size - 1), -((remainder + below) // stride))
        high = min(size - 1, (below - remainder) // stride)
        if not moved:
            low = max(low, 0)  # the mirror image is the same meeting
        for d in range(low, high + 1):
            if next(steps, None) is None or search(i + 1, remainder + d * stride, moved or d != 0):
                return True
        if moved:
            visited.add((i, remainder))
        return False

    return search(0, 0, False)


NUMBERS = frozenset((bool, int, float, complex))


def frozen(value: Any, visited: dict[int, tuple[Any, Any]] | None = None) -> Any:
    """Nested lists as tuples: what an item does while it is converted cannot change them.

    NumPy holds no reference to the items of a list that it converts, and crashes when they go.
    """
    if not isinstance(value, list | tuple):
        return value
    visited = {} if visited is None else visited
    if id(value) in visited:
        return visited[id(value)][1]
    visited[id(value)] = value, value  # one that contains itself stays a list: NumPy refuses it
    items = tuple(value)
    if not NUMBERS.issuperset(map(type, items)):  # numbers run no code
        items = tuple([frozen(item, visited) for item in items])
    visited[id(value)] = value, items
    return items


def parse_flags(value: Any) -> TensorFlags:
    """A flag, its name, or a list of names (an empty one is NONE)."""
    if isinstance(value, TensorFlags | str):
        return TensorFlags.parse(value)
    if not isinstance(value, Iterable):
        raise ArgumentError(
            f"TensorFlags: expected a name or a list of names, got {_json.short_repr(value)}"
        )
    try:
        names = members_of(value, _MOST_SIZES)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"TensorFlags: {error}") from error
    return max(map(TensorFlags.parse, names), default=TensorFlags.NONE)


def _json_flags(value: Any) -> TensorFlags:
    if isinstance(value, list):
        return max(_json.parse_members(value, TensorFlags.read_json), default=TensorFlags.NONE)
    return TensorFlags.read_json(value)


def integer_of(value: Any) -> int:
    """Convert to an integer of at most 64 bits; reject bools."""
    if type(value).__name__ in ("bool", "bool_"):  # Python's or NumPy's
        raise TypeError("expected an integer, got a bool")
    number = operator.index(value)
    if abs(number) > _json.UINT64_MAX:
        raise ValueError("expected an integer of at most 64 bits")
    return number


def _integers(values: Any) -> tuple[int, ...]:
    return tuple(map(integer_of, members_of(values, _MOST_SIZES)))


def members_of(values: Any, most: int = MAX_DIMENSIONS) -> list[Any]:
    """The members of a sequence, limited in number because it may be infinite."""
    if isinstance(values, str | bytes | Mapping):
        raise TypeError("expected a sequence")
    found: list[Any] = []
    for value in values:
        if len(found) == most:
            raise ValueError(f"expected at most {most} values")
        found.append(value)
    return found


def _dimensions(value: Any) -> tuple[int, ...]:
    found = _json.json_uint32_array(value)
    # More than MAX_DIMENSIONS is a violation; the product of many thousand would take hours.
    if len(found) > _MOST_SIZES:
        raise ModelError(f"Expected at most {MAX_DIMENSIONS} integers, got {len(found)}.")
    return found


def _total_size(value: Any) -> int | None:
    """Read a size in bytes; return None for 0, with which DxDispatch computes the size."""
    return 0 if value == "0" else _json.json_uint64(value) or None


def _optional_strides(value: Any) -> tuple[int, ...] | None:
    return None if value is None else _dimensions(value) or None  # an empty array means no strides


def _buffer_type(value: Any) -> None:
    if _json.json_string(value) not in ("BUFFER", "DML_TENSOR_TYPE_BUFFER"):
        raise ModelError(f"Expected BUFFER, got {_json.short_repr(value)}.")


def _exactly(count: int) -> Any:
    def parse(value: Any) -> int:
        if _json.json_uint32(value) != count:
            raise ModelError(f"Expected {count} (the length of Sizes), got {value}.")
        return count

    return parse
