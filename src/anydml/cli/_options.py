"""Options that several commands take, and what they accept."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from anydml.core._json import did_you_mean, short_repr
from anydml.core.comparison import Bounds
from anydml.core.errors import ArgumentError
from anydml.core.levels import LATEST, FeatureLevel
from anydml.core.releases import level_of_directml, level_of_windows, runtime_of
from anydml.devices.backends import NAMES, is_name
from anydml.documents import Options
from anydml.models import Limits

T = TypeVar("T")

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


def to_bound(text: float | str) -> float:
    try:
        bound = float(text)
    except ValueError:
        bound = math.nan
    if not 0 <= bound < math.inf:
        raise click.BadParameter(f"expected a finite number of at least 0, got {short_repr(text)}")
    return bound


def to_integer(text: int | str) -> int:
    if re.fullmatch(r"[0-9]{1,20}", str(text)) is None:
        raise click.BadParameter(f"expected an integer of at least 0, got {short_repr(text)}")
    return int(text)


def _to_shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, sizes = text.rpartition("=")
    if not (name and equals and re.fullmatch(r"\d{1,10}(,\d{1,10})*|scalar", sizes)):
        raise click.BadParameter(f"expected NAME=1,3,224,224, got {short_repr(text)}")
    return name, () if sizes == "scalar" else tuple(map(int, sizes.split(",")))


def _to_dimension(text: str) -> tuple[str, int]:
    name, equals, size = text.rpartition("=")
    if not (name and equals and re.fullmatch(r"\d{1,10}", size)):
        raise click.BadParameter(f"expected NAME=1, got {short_repr(text)}")
    return name, int(size)


def file_option(form: str, *names: str, help: str) -> Callable[[Callable[..., Any]], Any]:
    """Make an option that may come several times and that takes a name and a file."""

    def to_file(text: str) -> tuple[str, Path]:
        name, equals, path = text.rpartition("=")
        if not (name and equals and path):
            raise click.BadParameter(f"expected {form}, got {short_repr(text)}")
        return name, Path(path)

    return click.option(*names, type=to_file, multiple=True, metavar=form, help=help)


def no_such(what: str, name: str, known: Collection[str]) -> str:
    """Report that a model has nothing of a name, and what it has."""
    names = ", ".join(map(short_repr, islice(known, _MOST_NAMES)))
    more = ", …" if len(known) > _MOST_NAMES else ""
    hint = did_you_mean(name, known) or f"; it has {names or 'none'}{more}"
    return f"the model has no {what} {short_repr(name)}{hint}"


def _bundled(
    parameter: str, kind: type[Any], *options: Callable[..., Any]
) -> Callable[[Callable[..., Any]], Any]:
    """Make a decorator that adds options to a command, which takes them as one object."""
    names = [field.name for field in fields(kind)]

    def add(command: Callable[..., Any]) -> Any:
        @functools.wraps(command)
        def with_object(**given: Any) -> Any:
            own = {name: given.pop(name) for name in names if name in given}
            return command(**{parameter: kind(**own)}, **given)

        for option in reversed(options):
            with_object = option(with_object)
        return with_object

    return add


add_bounds_options = _bundled(
    "bounds", Bounds,
    click.option("--rtol", type=to_bound, default=0.0, metavar="X",
                 help="Accept floats that differ by up to X times the expected value."),
    click.option("--atol", type=to_bound, default=0.0, metavar="X",
                 help="Accept floats that differ by up to X."),
    click.option("--ulp", type=to_integer, default=0, metavar="N",
                 help="Accept floats that are at most N ULPs apart."),
    click.option("--cast", is_flag=True,
                 help="Convert the expected values to the type of the others first."),
)  # fmt: skip


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

_MEMORY_LIMIT: Final = click.option(
    "--memory-limit", type=_size, metavar="SIZE", default="4GiB", show_default=True,
    help="Maximum total memory of the model's resources.",
)  # fmt: skip

add_limits_options = _bundled(
    "limits", Limits,
    feature_level_option,
    click.option("--input-dir", type=PathType(exists=True, file_okay=False, path_type=Path),
                 metavar="DIR", help="Folder to read files from.  [default: the model's folder; "
                 "none for standard input]"),
    click.option("--output-dir", type=PathType(file_okay=False, path_type=Path), metavar="DIR",
                 help="Folder for writeFile commands.  [default: a new folder MODEL.out]"),
    click.option("--overwrite", is_flag=True,
                 help="Replace existing files, and use an existing folder MODEL.out."),
    _MEMORY_LIMIT,
)  # fmt: skip
add_output_options = _bundled(
    "limits", Limits,
    _MEMORY_LIMIT,
    click.option("--overwrite", is_flag=True, help="Replace the files if they exist."),
)  # fmt: skip


def _found_by(find: Callable[[str], T]) -> Callable[[str], T]:
    def convert(text: str) -> T:
        try:
            return find(text)
        except ArgumentError as error:
            raise click.BadParameter(str(error)) from error

    return convert


def add_level_options(command: Callable[..., Any]) -> Any:
    """Add options that say a feature level in other words; see `one_level`."""
    for option in (
        click.option("--windows", type=_found_by(level_of_windows), metavar="VERSION",
                     help="Check against the DirectML of a Windows release (\"11 22H2\") or "
                     "build."),
        click.option("--directml", type=_found_by(level_of_directml), metavar="VERSION",
                     help="Check against the feature level of a DirectML version, such as 1.8."),
    ):  # fmt: skip
        command = option(command)
    return command


def one_level(
    level: FeatureLevel, directml: FeatureLevel | None, windows: FeatureLevel | None
) -> FeatureLevel:
    """The level that three options say, of which one may be given."""
    given = [item for item in (directml, windows) if item is not None]
    if len(given) + (level is not LATEST) > 1:
        raise click.UsageError("expected one of --feature-level, --directml and --windows")
    return given[0] if given else level


_SIZES: Final = (
    click.option("--shape", type=_to_shape, multiple=True, metavar="NAME=1,3,224,224",
                 help="Shape of an input of an ONNX model (`NAME=scalar` for rank 0)."),
    click.option("--dim", type=_to_dimension, multiple=True, metavar="NAME=1",
                 help="Size of a free dimension of an ONNX model."),
)  # fmt: skip
_AS_ONNXRUNTIME: Final = click.option(
    "--as-onnxruntime", is_flag=True,
    help="Run exactly the versions of ONNX operators that ONNX Runtime's DirectML provider has.",
)  # fmt: skip
_RUNTIME: Final = click.option(
    "--runtime", type=_found_by(runtime_of), metavar="VERSION",
    help="Judge an ONNX model by the kernels of a version of onnxruntime-directml, such as 1.20.1.",
)  # fmt: skip
_RUN: Final = (
    file_option("NAME=FILE.npy", "--input", help="Input of an ONNX model."),
    click.option("--random", type=to_integer, metavar="SEED",
                 help="Fill the other inputs of an ONNX model with random numbers: floats in "
                 "-1..1, integers 0 or 1."),
    click.option("--expect-all", metavar="DIR",
                 type=PathType(exists=True, file_okay=False, path_type=Path),
                 help="Compare every tensor of an ONNX model for which DIR has NAME.npy, and name "
                 "the first node that differs."),
    click.option("--against", metavar="PROVIDER",
                 help="Run an ONNX model on this device too, or in ONNX Runtime with a provider "
                 "such as CPUExecutionProvider, compare every tensor, and write a model of the "
                 "first node that differs (--rtol and --atol; 1e-3 and 1e-4 by default). "
                 "--device onnxruntime:PROVIDER compares two providers."),
)  # fmt: skip
add_sizes_options = _bundled("options", Options, *_SIZES)
add_check_options = _bundled("options", Options, *_SIZES, _AS_ONNXRUNTIME, _RUNTIME)
add_run_options = _bundled("options", Options, *_RUN, *_SIZES, _AS_ONNXRUNTIME)


PROVIDER_OF: Final = "onnxruntime:"
"""The beginning of a `--device` of `anydml run --against` that is a provider of ONNX Runtime."""


def _checked_device(
    context: click.Context, _option: click.Parameter, name: str | None
) -> str | None:
    is_provider = context.command.name == "run" and str(name).startswith(PROVIDER_OF)
    if name is not None and not is_provider and not is_name(name):
        raise click.BadParameter(f"expected one of {', '.join((*NAMES, 'auto'))}, got {name!r}")
    return name


device_option = click.option(
    "--device",
    metavar="[cpu|onnxruntime|cuda|cuda:N|xla|xla:PLATFORM|reference|auto]",
    callback=_checked_device,
    show_default="cpu; to run an ONNX model, onnxruntime if it is installed",
    help="Device to run on.",
)
