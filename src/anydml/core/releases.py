"""Releases of DirectML, and of Windows and ONNX Runtime that contain them, as feature levels."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from anydml.core._json import short_repr
from anydml.core.errors import ArgumentError
from anydml.core.levels import FeatureLevel


class Release(NamedTuple):
    """The first release of DirectML at a feature level.

    Attributes
    ----------
    version : str
        As ``"1.8.0"``.
    level : FeatureLevel
        The level that it introduced.
    """

    version: str
    level: FeatureLevel


class Windows(NamedTuple):
    """A release of Windows that contains DirectML.

    Attributes
    ----------
    system : str
        ``"10"`` or ``"11"``.
    release : str
        As ``"22H2"``.
    build : str
        The number of its build.
    level : FeatureLevel
        The level of the DirectML that it contains.
    """

    system: str
    release: str
    build: str
    level: FeatureLevel

    def __str__(self) -> str:
        return f"{self.system} {self.release}"


# From the project's list of releases; no release had levels 2_1 and 6_3 alone.
_L = FeatureLevel
RELEASES: Final = (
    Release("1.0.0", _L.LEVEL_1_0),
    Release("1.1.0", _L.LEVEL_2_0),
    Release("1.4.0", _L.LEVEL_3_0),
    Release("1.5.0", _L.LEVEL_3_1),
    Release("1.6.0", _L.LEVEL_4_0),
    Release("1.7.0", _L.LEVEL_4_1),
    Release("1.8.0", _L.LEVEL_5_0),
    Release("1.9.0", _L.LEVEL_5_1),
    Release("1.10.0", _L.LEVEL_5_2),
    Release("1.11.0", _L.LEVEL_6_0),
    Release("1.12.0", _L.LEVEL_6_1),
    Release("1.13.0", _L.LEVEL_6_2),
    Release("1.15.0", _L.LEVEL_6_4),
)
# A release that only switches on what the one before it contains has the same library.
WINDOWS: Final = (
    Windows("10", "1903", "18362", _L.LEVEL_1_0),
    Windows("10", "1909", "18363", _L.LEVEL_1_0),
    Windows("10", "2004", "19041", _L.LEVEL_2_0),
    Windows("10", "20H2", "19042", _L.LEVEL_2_0),
    Windows("10", "21H1", "19043", _L.LEVEL_2_0),
    Windows("10", "21H2", "19044", _L.LEVEL_2_0),
    Windows("10", "22H2", "19045", _L.LEVEL_2_0),
    Windows("11", "21H2", "22000", _L.LEVEL_4_0),
    Windows("11", "22H2", "22621", _L.LEVEL_5_0),
    Windows("11", "23H2", "22631", _L.LEVEL_5_0),
    Windows("11", "24H2", "26100", _L.LEVEL_6_2),
    Windows("11", "25H2", "26200", _L.LEVEL_6_2),
)


@dataclass(frozen=True)
class Runtime:
    """A release of ONNX Runtime's package with the DirectML provider.

    Attributes
    ----------
    minor : str
        As ``"1.24"``.
    patches : str
        The last numbers of its versions, as ``"1 2"``.
    directml : str
        The version of DirectML in the package.
    added : str
        The kernels that the release before it does not have, as ``"Pad-18 Resize-18,19"``.
    """

    minor: str
    patches: str
    directml: str
    added: str = ""

    @property
    def versions(self) -> list[str]:
        """The versions of the package, as ``"1.24.1"``."""
        return [f"{self.minor}.{patch}" for patch in self.patches.split()]

    @cached_property
    def missing(self) -> frozenset[str]:
        """The kernels that only later releases have, as ``"Resize-18"``."""
        pairs = [text.split("-") for release in RUNTIMES[RUNTIMES.index(self) + 1 :]
                 for text in release.added.split()]  # fmt: skip
        return frozenset(f"{name}-{n}" for name, numbers in pairs for n in numbers.split(","))

    def __str__(self) -> str:
        return f"onnxruntime-directml {self.minor} (DirectML {self.directml})"


# Read from the tables of kernels in the packages for Windows; 1.24.4 is the last of them.
RUNTIMES: Final = (
    Runtime("1.15", "0 1", "1.12.0"),
    Runtime("1.16", "0 1", "1.12.1",
            "BitwiseAnd-18 BitwiseNot-18 BitwiseOr-18 BitwiseXor-18 Pad-18 Split-18"),
    Runtime("1.16", "2 3", "1.12.1", "com.microsoft.RotaryEmbedding-1"),
    Runtime("1.17", "0 1 3", "1.13.1",
            "AveragePool-19 LpPool-18 com.microsoft.QLinearAveragePool-1 "
            "com.microsoft.QLinearConcat-1 com.microsoft.QLinearGlobalAveragePool-1"),
    Runtime("1.18", "0 1", "1.14.1",
            "Cast-19 CastLike-19 DequantizeLinear-19 Equal-19 Identity-19 IsInf-20 IsNaN-20 "
            "QuantizeLinear-19 ReduceMax-20 Reshape-19 Shape-19 SimplifiedLayerNormalization-1 "
            "Size-19 com.microsoft.DynamicQuantizeMatMul-1 com.microsoft.FastGelu-1 "
            "com.microsoft.GroupQueryAttention-1 com.microsoft.MatMulIntegerToFloat-1 "
            "com.microsoft.MatMulNBits-1 com.microsoft.QAttention-1 "
            "com.microsoft.SkipSimplifiedLayerNormalization-1"),
    Runtime("1.19", "0 2", "1.15.1", "Col2Im-18 Pad-19 ReduceMin-20 Resize-18,19"),
    Runtime("1.20", "0 1", "1.15.2",
            "Cast-21 DequantizeLinear-21 QuantizeLinear-21 Reshape-21 Shape-21 Squeeze-21 "
            "Unsqueeze-21"),
    Runtime("1.21", "0 1", "1.15.4",
            "CastLike-21 ConstantOfShape-21 Flatten-21 Identity-21 Pad-21 QLinearMatMul-21 "
            "Size-21 Transpose-21"),
    Runtime("1.22", "0", "1.15.4"),
    Runtime("1.23", "0", "1.15.4"),
    Runtime("1.24", "1 2 3 4", "1.15.4"),
)  # fmt: skip
_WINDOWS_FORM: Final = re.compile(
    r"(?:WINDOWS\s*)?(?:(1[01])\b,?\s*)?"
    r"(?:(?:VERSION\s+)?(\d{4}|\d\dH\d)|(?:BUILD\s+)?(?:10\.0\.)?(\d{5})(?:\.\d{1,6})?)?",
    re.ASCII,
)


def level_of_directml(version: str) -> FeatureLevel:
    """The feature level of a version of DirectML.

    Examples
    --------
    >>> from anydml.core.releases import level_of_directml
    >>> level_of_directml("1.8.2").suffix
    '5_0'
    """
    match = re.fullmatch(r"1\.(\d{1,3})(\.\d{1,3})?", version)
    minor = int(match[1]) if match else -1
    known = [release for release in RELEASES if _minor(release) <= minor]
    if not known or minor > _minor(RELEASES[-1]):
        first, last = RELEASES[0].version, RELEASES[-1].version
        raise ArgumentError(
            f"expected a version of DirectML, {first} to {last}, got {short_repr(version)}"
        )
    return known[-1].level


def _minor(release: Release) -> int:
    return int(release.version.split(".")[1])


def level_of_windows(version: str) -> FeatureLevel:
    """The feature level of the DirectML that a version of Windows contains.

    Parameters
    ----------
    version : str
        A system and its release, a release that one system alone has, or the number of a build.

    Examples
    --------
    >>> from anydml.core.releases import level_of_windows
    >>> level_of_windows("11 22H2").suffix
    '5_0'
    >>> level_of_windows("19045").suffix
    '2_0'
    """
    match = _WINDOWS_FORM.fullmatch(version.strip().upper())
    parts = match.groups() if match else ()
    given = {i: part for i, part in enumerate(parts) if part}
    found = [item for item in WINDOWS if given and all(item[i] == given[i] for i in given)]
    if len(found) != 1:
        choices = ", ".join(map(str, found or WINDOWS))
        build = "" if found else ", or the number of a build such as 22621"
        raise ArgumentError(
            f"expected a release of Windows that contains DirectML ({choices}{build}), got "
            f"{short_repr(version)}"
        )
    return found[0].level


def runtime_of(version: str) -> Runtime:
    """The release of ONNX Runtime with DirectML that has a version: ``"1.24.4"`` or ``"1.24"``.

    Examples
    --------
    >>> from anydml.core.releases import runtime_of
    >>> str(runtime_of("1.20"))
    'onnxruntime-directml 1.20 (DirectML 1.15.2)'
    """
    found = [item for item in RUNTIMES if version in (item.minor, *item.versions)]
    if not found:
        known = ", ".join(text for item in RUNTIMES for text in item.versions)
        raise ArgumentError(
            f"expected a version of ONNX Runtime that is packaged with DirectML ({known}, the "
            f"last one), got {short_repr(version)}"
        )
    return found[-1]


def first_release(level: FeatureLevel) -> Release:
    """The first release that has a feature level."""
    return next(release for release in RELEASES if release.level >= level)


def first_windows(level: FeatureLevel) -> str:
    """The first version of Windows whose DirectML has a feature level; empty if none does."""
    return next((f"Windows {item}" for item in WINDOWS if item.level >= level), "")


def describe(level: FeatureLevel) -> str:
    """A feature level with the versions of DirectML and Windows that have it first.

    Examples
    --------
    >>> from anydml.core.levels import FeatureLevel
    >>> from anydml.core.releases import describe
    >>> describe(FeatureLevel.LEVEL_6_4)
    '6_4 (DirectML 1.15.0; in no version of Windows)'
    """
    windows = first_windows(level) or "in no version of Windows"
    return f"{level.suffix} (DirectML {first_release(level).version}; {windows})"
