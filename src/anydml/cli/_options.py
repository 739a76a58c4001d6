"""Options that several commands take, and what they accept."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from anydml.core._json import did_you_mean, short_repr
from anydml.core.comparison import Bounds
from anydml.core.errors import ArgumentError
from anydml.core.levels import LATEST, FeatureLevel
from anydml.devices.backends import NAMES, is_name

# As many digits as Python makes a number of at any setting.
_SIZE: Final = re.compile(r"(\d{1,640})\s*(?:([KMGTPE])(?:iB|B)?|B)?", re.IGNORECASE)
_UNITS: Final = " KMGTPE"

_MOST_REPEATS: Final = 1_000_000
_MOST_NAMES: Final = 10


def _level(text: str) -> FeatureLevel:
    try:
        return FeatureLevel.parse(text)
    except ArgumentError as error:
        raise click.BadParameter(str(error)) from error


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(
            f"expected a number of bytes, or one with a unit of K, M, G, T, P or E (powers "
            f"of 1024), such as 1000000, 512M or 4GiB, got {short_repr(text)}"
        )
    return int(match[1]) << 10 * _UNITS.index((match[2] or " ").upper())


def to_repeats(text: int | str) -> int:
    text = str(text)  # an option's default comes as it is
    if re.fullmatch(r"[0-9]{1,20}", text) is None or not 1 <= int(text) <= _MOST_REPEATS:
        raise click.BadParameter(
            f"expected an integer in 1..{_MOST_REPEATS}, got {short_repr(text)}"
        )
    return int(text)


def _bound(text: float | str) -> float:
    try:
        bound = float(text)
    except ValueError:
        bound = math.nan
    if not 0 <= bound < math.inf:
        raise click.BadParameter(f"expected a finite number of at least 0, got {short_repr(text)}")
    return bound


def _ulps(text: int | str) -> int:
    if re.fullmatch(r"[0-9]{1,20}", str(text)) is None:
        raise click.BadParameter(f"expected an integer of at least 0, got {short_repr(text)}")
    return int(text)


def to_expectation(text: str) -> tuple[str, Path]:
    name, equals, path = text.rpartition("=")
    if not (name and equals and path):
        raise click.BadParameter(f"expected RESOURCE=FILE, got {short_repr(text)}")
    return name, Path(path)


def no_such(what: str, name: str, known: Collection[str]) -> str:
    """Report that a model has nothing of a name, and what it has."""
    names = ", ".join(map(short_repr, islice(known, _MOST_NAMES)))
    more = ", …" if len(known) > _MOST_NAMES else ""
    hint = did_you_mean(name, known) or f"; it has {names or 'none'}{more}"
    return f"the model has no {what} {short_repr(name)}{hint}"


def add_bounds_options(command: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(command)
    def with_bounds(*, rtol: float, atol: float, ulp: int, cast: bool, **others: Any) -> Any:
        return command(bounds=Bounds(rtol, atol, ulp, cast), **others)

    for option in (
        click.option("--cast", is_flag=True,
                     help="Convert the expected values to the type of the others first."),
        click.option("--ulp", type=_ulps, default=0, metavar="N",
                     help="Accept floats that are at most N ULPs apart."),
        click.option("--atol", type=_bound, default=0.0, metavar="X",
                     help="Accept floats that differ by up to X."),
        click.option("--rtol", type=_bound, default=0.0, metavar="X",
                     help="Accept floats that differ by up to X times the expected value."),
    ):  # fmt: skip
        with_bounds = option(with_bounds)
    return with_bounds


class PathType(click.Path):
    """Paths; an empty one, of a variable that is not set, is not the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("expected a path, got ''", param, ctx)
        return super().convert(value, param, ctx)


feature_level_option = click.option(
    "--feature-level",
    type=_level,
    metavar="LEVEL",
    default=LATEST.suffix,
    show_default=True,
    help="The feature level that operators are checked against.",
)

memory_limit_option = click.option(
    "--memory-limit",
    type=_size,
    metavar="SIZE",
    default="4GiB",
    show_default=True,
    help="Maximum total memory of the model's resources.",
)


def add_model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        memory_limit_option,
        click.option(
            "--overwrite",
            is_flag=True,
            help="Replace existing files, and use an existing folder MODEL.out.",
        ),
        click.option(
            "--output-dir",
            type=PathType(file_okay=False, path_type=Path),
            metavar="DIR",
            help="Folder for writeFile commands.  [default: a new folder MODEL.out]",
        ),
        click.option(
            "--input-dir",
            type=PathType(exists=True, file_okay=False, path_type=Path),
            metavar="DIR",
            help="Folder to read files from.  [default: the model's folder; none for "
            "standard input]",
        ),
        feature_level_option,
    ):
        command = option(command)
    return command


def _checked_device(_context: click.Context, _option: click.Parameter, name: str) -> str:
    if not is_name(name):
        raise click.BadParameter(f"expected one of {', '.join((*NAMES, 'auto'))}, got {name!r}")
    return name


device_option = click.option(
    "--device",
    metavar="[cpu|onnxruntime|cuda|cuda:N|xla|xla:PLATFORM|reference|auto]",
    callback=_checked_device,
    default="cpu",
    show_default=True,
    help="Device to run on.",
)
