"""What a model may touch: files inside known folders, regular ones only, and bounded memory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, cast

from anydml._json import shown
from anydml.errors import ModelError

GIBIBYTE: Final = 2**30

# Reading JSON takes up to some 25 times the memory of its text; small models are never refused.
_TEXT_SHARE: Final = 32
_LEAST_TEXT: Final = 2**20

# Not on every platform; without them only the checks that need no flag remain.
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)


@dataclass(frozen=True)
class Limits:
    """What a model may read, write and allocate.

    Parameters
    ----------
    output_dir : Path
        Where `writeFile` commands write; by default the current directory, as DxDispatch does.
    memory_limit : int
        The most bytes that all resources together take, and with them copies of inputs that are
        OWNED_BY_DML or whose strides repeat elements; 4 GiB by default. The text of a model
        may be a 32nd of it, or 1 MiB.
    allow_outside_paths : bool
        Let the model read and write wherever the user can.
    """

    output_dir: Path = field(default_factory=Path.cwd)
    memory_limit: int = 4 * GIBIBYTE
    allow_outside_paths: bool = False

    @property
    def text_limit(self) -> int:
        """The most bytes of a model's text."""
        return max(_LEAST_TEXT, self.memory_limit // _TEXT_SHARE)


def find_source(name: str, model_dir: Path, limits: Limits) -> Path:
    """The file that a `sourcePath` names: beside the model, or else in the current directory.

    Raises
    ------
    ModelError
        No such file; or one outside both folders, links followed, unless that is allowed.
    """
    roots = (model_dir.resolve(), Path.cwd().resolve())
    outside = False
    for root in roots:
        path = _joined(root, name)
        if not limits.allow_outside_paths and not any(map(path.is_relative_to, roots)):
            outside = True
        elif os.path.exists(path):  # False, too, for what can be no name
            return path
    if outside:
        raise ModelError(
            f"Expected a file in the model's folder or the current directory, got {shown(name)}; "
            "--allow-outside-paths lets a model read elsewhere."
        )
    raise ModelError(f"No file {shown(name)} in the model's folder or the current directory.")


def find_target(name: str, limits: Limits) -> Path:
    """The file that a `targetPath` names, inside the output folder.

    Raises
    ------
    ModelError
        A path outside the folder (links followed), a hidden one, or no file's name, unless it is
        allowed.
    """
    root = limits.output_dir.resolve()
    path = _joined(root, name)
    if limits.allow_outside_paths:
        return path
    if path == root or not path.is_relative_to(root):
        raise ModelError(
            f"Expected a file inside the output folder, got {shown(name)}; "
            "--allow-outside-paths lets a model write elsewhere."
        )
    # With a home folder as the output folder, these are what a model could do harm with.
    if any(part.startswith(".") for part in path.relative_to(root).parts):
        raise ModelError(
            f"Expected a file that is not hidden, got {shown(name)}; "
            "--allow-outside-paths lets a model write it."
        )
    return path


def _joined(root: Path, name: str) -> Path:
    # Models come from Windows, where both slashes separate folders.
    try:
        return (root / name.replace("\\", "/")).resolve()
    except (OSError, ValueError, RuntimeError) as error:  # a NUL, a surrogate, a loop of links
        raise ModelError(f"Expected a file's path, got {shown(name)}: {error}.") from error


@contextmanager
def open_source(path: Path) -> Iterator[BinaryIO]:
    """A regular file, open for reading.

    Raises
    ------
    ModelError
        It cannot be opened or read, or is a folder, a device or a pipe.
    """
    with _reported(path, "read"), _opened(path, os.O_RDONLY, "rb") as file:
        yield file


@contextmanager
def open_target(path: Path) -> Iterator[BinaryIO]:
    """A regular file, emptied and open for writing; its folder is created.

    Raises
    ------
    ModelError
        It cannot be created or written, or is a folder, a device or a pipe.
    """
    with _reported(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _opened(path, os.O_WRONLY | os.O_CREAT, "wb") as file:
            yield file


@contextmanager
def _reported(path: Path, done: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"File {str(path)!r} cannot be {done}: {reason}.") from error


@contextmanager
def _opened(path: Path, flags: int, mode: str) -> Iterator[BinaryIO]:
    # The path has no links left: one that appears now is not followed. Opening does not wait, so
    # that a pipe cannot hold the run up before it is refused.
    handle = os.open(path, flags | _CLOSE_ON_EXEC | _NO_LINK | _NO_WAIT | _BINARY, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ModelError(f"Expected a regular file, got {str(path)!r}.")
        if mode == "wb":
            os.ftruncate(handle, 0)
    except BaseException:
        os.close(handle)
        raise
    with cast(BinaryIO, os.fdopen(handle, mode)) as file:
        yield file
