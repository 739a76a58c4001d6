"""`FeatureLevel`: the levels at which DirectML introduced operators, types and ranks."""

from __future__ import annotations

from typing import Self

from anydml.core.enums import NamedEnum


class FeatureLevel(NamedEnum):
    """``DML_FEATURE_LEVEL``, with the values of ``directml.h``; each includes the ones before it.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.FeatureLevel.parse("3.0") < dml.FeatureLevel.parse("DML_FEATURE_LEVEL_4_1")
    True
    """

    LEVEL_1_0 = 0x1000
    LEVEL_2_0 = 0x2000
    LEVEL_2_1 = 0x2100
    LEVEL_3_0 = 0x3000
    LEVEL_3_1 = 0x3100
    LEVEL_4_0 = 0x4000
    LEVEL_4_1 = 0x4100
    LEVEL_5_0 = 0x5000
    LEVEL_5_1 = 0x5100
    LEVEL_5_2 = 0x5200
    LEVEL_6_0 = 0x6000
    LEVEL_6_1 = 0x6100
    LEVEL_6_2 = 0x6200
    LEVEL_6_3 = 0x6300
    LEVEL_6_4 = 0x6400

    @classmethod
    def _find(cls, value: object) -> Self | None:
        return super()._find(value.replace(".", "_") if isinstance(value, str) else value)

    @property
    def suffix(self) -> str:
        return self.name.removeprefix("LEVEL_")


LATEST = max(FeatureLevel)
