"""Advice in messages about descriptors: another level, another operator, operators to fuse."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from anydml.core.dtypes import DataType
from anydml.core.levels import FeatureLevel

if TYPE_CHECKING:
    from anydml.ops._descriptor import Descriptor

_ACTIVATION: Final = "ACTIVATION_"
"""The prefix of the names of activations."""


def at_level(
    accepted: str,
    level: FeatureLevel,
    got: object,
    later: Sequence[FeatureLevel],
    alternative: str = "",
) -> str:
    """The accepted value at a level, and the first level that accepts the actual value."""
    hint = f"{got} from {later[0]}" if later else f"{got} at no level{alternative}"
    return f"{accepted} at feature level {level} ({hint})"


def operator_without_options(kind: type[Descriptor], name: str, data_type: DataType) -> str:
    """The operator without this one's options that accepts the data type, or an empty string."""
    for base in kind.__mro__[1:]:
        if "NAME" not in vars(base):
            continue
        simpler: type[Descriptor] = base
        known = {info.name for info in simpler.fields()}
        options = [info for info in kind.fields() if info.name not in known]
        levels = [row.level for row in simpler.SUPPORT if data_type in row.tensors[name].data_types]
        if levels and options and all(info.optional for info in options):
            without = " and ".join(info.name for info in options)
            return f"; {simpler.NAME}, without {without}, takes it from {levels[0]}"
    return ""


def why_not_fused(
    kind: type[Descriptor], passed: Collection[str], defined: Iterable[type[Descriptor]]
) -> str:
    """The end of a message about missing tensors, if an activation was created without any."""
    tensors = {info.attribute for info in kind.tensor_fields()}
    name = getattr(kind, "NAME", "")
    if kind.FUSED or not name.startswith(_ACTIVATION) or tensors & {*passed}:
        return ""
    fusable = ", ".join(sorted({other.__name__ for other in defined if other.FUSED}))
    return f". It cannot be fused into another operator; {fusable} can."
