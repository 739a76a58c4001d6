"""DirectML's releases and the versions of Windows that contain them, as feature levels."""

from __future__ import annotations

import re
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
    windows : str
        The first version of Windows that contains a release of this level; empty if none does.
    """

    version: str
    level: FeatureLevel
    windows: str = ""


# From the project's list of releases; no release had levels 2_1 and 6_3 alone.
_L = FeatureLevel
RELEASES: Final = (
    Release("1.0.0", _L.LEVEL_1_0, "Windows 10 1903"),
    Release("1.1.0", _L.LEVEL_2_0, "Windows 10 2004"),
    Release("1.4.0", _L.LEVEL_3_0),
    Release("1.5.0", _L.LEVEL_3_1),
    Release("1.6.0", _L.LEVEL_4_0, "Windows 11 21H2"),
    Release("1.7.0", _L.LEVEL_4_1),
    Release("1.8.0", _L.LEVEL_5_0, "Windows 11 22H2"),
    Release("1.9.0", _L.LEVEL_5_1),
    Release("1.10.0", _L.LEVEL_5_2),
    Release("1.11.0", _L.LEVEL_6_0),
    Release("1.12.0", _L.LEVEL_6_1),
    Release("1.13.0", _L.LEVEL_6_2, "Windows 11 24H2"),
    Release("1.15.0", _L.LEVEL_6_4),
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

    Examples
    --------
    >>> from anydml.core.releases import level_of_windows
    >>> level_of_windows("22H2").suffix
    '5_0'
    """
    known = {release.windows.split()[-1]: release for release in RELEASES if release.windows}
    found = known.get(version.upper().removeprefix("WINDOWS ").split(" ")[-1])
    if found is None:
        raise ArgumentError(
            f"expected a version of Windows ({', '.join(known)}), got {short_repr(version)}"
        )
    return found.level


def first_release(level: FeatureLevel) -> Release:
    """The first release that has a feature level."""
    return next(release for release in RELEASES if release.level >= level)


def first_windows(level: FeatureLevel) -> str:
    """The first version of Windows whose DirectML has a feature level; empty if none does."""
    return next((r.windows for r in RELEASES if r.level >= level and r.windows), "")


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
