"""What a model may touch: the names that it may use, in which folders, and how much memory."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anydml.core._json import short_repr
from anydml.core.errors import ModelError

GIBIBYTE: Final = 2**30

# Reading JSON takes up to some 40 times the memory of its text; small models are never refused.
_TEXT_SHARE: Final = 64
_LEAST_TEXT: Final = 2**20

# What every file system takes as one component; and no path that users could not delete again.
_LONGEST_PART: Final = 255
_LONGEST_NAME: Final = 1024


@dataclass(frozen=True)
class Limits:
    """What a model may read, write and allocate.

    Parameters
    ----------
    output_dir : str or Path, optional
        Where `writeFile` commands write; made when it is not there. By default a new folder in the
        current one, named after the model: ``split.out`` for ``split.json``.
    memory_limit : int
        The most bytes that all resources together take, and with them copies of inputs that are
        OWNED_BY_DML or whose strides repeat elements; 4 GiB by default. The text of a model
        may be a 64th of it, or 1 MiB.
    input_dir : str or Path, optional
        Where files that the model names are read from; by default the model's own folder, and
        nowhere for a model from standard input.
    overwrite : bool
        Whether files that exist are replaced, and a folder named after the model may be there.
    """

    output_dir: str | Path | None = None
    memory_limit: int = 4 * GIBIBYTE
    input_dir: str | Path | None = None
    overwrite: bool = False

    @property
    def text_limit(self) -> int:
        """The most bytes of a model's text."""
        return max(_LEAST_TEXT, self.memory_limit // _TEXT_SHARE)


@dataclass(frozen=True)
class Folder:
    """A folder that a model may not leave.

    Attributes
    ----------
    path : Path
        Absolute and without links.
    display_path : Path
        As its user knows it.
    """

    path: Path
    display_path: Path

    @classmethod
    def of(cls, path: str | Path) -> Folder:
        """The folder at a path of the user's, in which links are followed."""
        return cls(_real(Path(path)), Path(path))


def own_folder(limits: Limits) -> bool:
    """Whether a model writes to a new folder that is named after it."""
    return limits.output_dir is None


def output_folder(model: str, limits: Limits) -> Folder:
    """The folder that a model of this name writes to; nothing is made."""
    if limits.output_dir is not None:
        return Folder.of(limits.output_dir)
    own = Path(f"{model}.out")
    return Folder(_real(Path()) / own, own)  # its last component may be no link


def _real(path: Path) -> Path:
    try:
        real = path.resolve()
    except (OSError, ValueError, RuntimeError) as error:  # a loop of links, a NUL
        raise ModelError(f"Expected a folder, got {str(path)!r}: {error}.") from error
    if any(map(os.path.islink, (real, *real.parents))):  # Python 3.13 leaves a loop as it is
        raise ModelError(f"Expected a folder, got {str(path)!r}: a loop of links.")
    return real


def model_name(path: Path) -> str:
    """What a model's output folder is named after: never hidden, nothing for a terminal to obey."""
    known = path.suffix.lower() in (".json", ".bin")
    stem = path.name[: -len(path.suffix)] if known else path.name
    readable = "".join(c if c.isprintable() else "_" for c in stem.lstrip("."))
    return readable or "model"


def parts_below(folder: Folder, name: str) -> tuple[str, ...]:
    """The way from a folder to the file in it that a model names.

    Nothing is looked up: whether the way holds any link is seen when it is walked.

    Raises
    ------
    ModelError
        The path leaves the folder, is hidden, or is not a file name.
    """
    if not name.isprintable():  # a NUL, a surrogate, what a terminal would act on
        raise ModelError(f"Expected a path of printable characters, got {short_repr(name)}.")
    if len(os.fsencode(name)) > _LONGEST_NAME:
        raise ModelError(
            f"Expected a path of at most {_LONGEST_NAME} bytes, got {short_repr(name)}."
        )
    path = name.replace("\\", "/")  # models come from Windows, where both separate folders
    if not path or path.endswith("/"):
        raise ModelError(f"Expected a file's path, got {short_repr(name)}.")
    if path.startswith("/"):
        path = _relative(folder, path)
    parts = tuple(posixpath.normpath(path).split("/"))
    if parts[0] in ("..", ".", ""):
        raise ModelError(
            f"Expected a file inside folder {str(folder.display_path)!r}, got {short_repr(name)}."
        )
    # With a home folder as the output folder, these are what a model could do harm with.
    if any(part.startswith(".") for part in parts):
        raise ModelError(f"Expected a file that is not hidden, got {short_repr(name)}.")
    if any(len(os.fsencode(part)) > _LONGEST_PART for part in parts):
        raise ModelError(
            f"Expected names of at most {_LONGEST_PART} bytes in a path, got {short_repr(name)}."
        )
    return parts


def _relative(folder: Folder, path: str) -> str:
    for root in (folder.display_path.absolute(), folder.path):
        relative = posixpath.relpath(posixpath.normpath(path), root.as_posix())
        if relative.split("/")[0] != "..":
            return relative
    return ".."
