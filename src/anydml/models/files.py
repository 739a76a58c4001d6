"""Files of a model: which ones it may name, and how they are opened without leaving its folders.

A path is walked from a folder that is open: each component is opened relative to the one before and
must be no link (`open_folders`). A check of the whole path before it is opened would leave time to
put a link there.
"""

from __future__ import annotations

import errno
import os
import posixpath
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from anydml.core._json import short_repr
from anydml.core.errors import ModelError
from anydml.models.open_folders import NEW, READ, READ_USERS, OpenFolder, is_link, open_root

GIBIBYTE: Final = 2**30

# Reading JSON takes up to some 40 times the memory of its text; small models are never refused.
_TEXT_SHARE: Final = 64
_LEAST_TEXT: Final = 2**20

# What every file system takes as one component; and no path that users could not delete again.
_LONGEST_PART: Final = 255
_LONGEST_NAME: Final = 1024


@dataclass(frozen=True)
class Limits:
    """Limits of what a model may read, write and allocate.

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
        """Maximum size of the text of a model, in bytes."""
        return max(_LEAST_TEXT, self.memory_limit // _TEXT_SHARE)


@dataclass(frozen=True)
class Folder:
    """Folder that a model may not leave.

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
        """Resolve a path of the user, in which links are followed."""
        return cls(_real(Path(path)), Path(path))

    def find(self, name: str) -> Place | None:
        """Find a file; None if it does not exist, or a model may not name it."""
        try:
            parts = parts_below(self, name)
        except ModelError:
            return None
        return Place(self, parts) if self.path.joinpath(*parts).exists() else None


def own_folder(limits: Limits) -> bool:
    """Return whether a model writes to a new folder that is named after it."""
    return limits.output_dir is None


def output_folder(model: str, limits: Limits) -> Folder:
    """Return the folder that a model of this name writes to; nothing is made."""
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
    """Name a model after its file: never hidden, nothing for a terminal to obey."""
    known = path.suffix.lower() in (".json", ".bin")
    stem = path.name[: -len(path.suffix)] if known else path.name
    readable = "".join(c if c.isprintable() else "_" for c in stem.lstrip("."))
    return readable or "model"


def parts_below(folder: Folder, name: str) -> tuple[str, ...]:
    """Return the components of the path from a folder to the file in it that a model names.

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


# Of a write, so that Ctrl-C need not wait for a large one.
_PIECE: Final = 2**24

_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


class State(NamedTuple):
    """Identity of a file, which changes when its data do."""

    device: int
    inode: int
    size: int
    modified: int


@dataclass(frozen=True)
class Place:
    """File below a folder: the folder, and the components of the path from there."""

    folder: Folder
    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the file alone."""
        return self.parts[-1]

    @property
    def display_path(self) -> str:
        """Path as the user knows it."""
        return str(self.folder.display_path.joinpath(*self.parts))

    def __str__(self) -> str:
        return repr(self.display_path)

    @contextmanager
    def open_file(self) -> Iterator[BinaryIO]:
        """Open a regular file for reading.

        Raises
        ------
        ModelError
            It cannot be opened or read, is behind a link, or is a folder, a device or a pipe.
        """
        with _reported(self, "read"):
            with _walked(_entered(self.folder.path), self.parts[:-1]) as folder:
                handle = folder.open(self.name, READ)
            with _regular(handle, self) as file:
                yield file


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file of the user, whose path may have links, for reading.

    Raises
    ------
    ModelError
        It cannot be opened or read, or is a folder, a device or a pipe.
    """
    display_path = repr(str(path))
    try:
        with (
            _reported(display_path, "read"),
            _regular(os.open(path, READ_USERS), display_path) as file,
        ):
            yield file
    except ValueError as error:  # a NUL
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"File {display_path} cannot be read: {error}.") from error


def state(file: BinaryIO) -> State:
    """Return the state of an open file."""
    found = os.fstat(file.fileno())
    return State(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


class Output:
    """Folder that a run writes to, made and open while it is a context.

    Parameters
    ----------
    folder : Folder
        Where.
    new : bool
        Whether the folder may not be there before, and is removed when nothing has been written.
    overwrite : bool
        Whether files that are there may be replaced.

    Raises
    ------
    ModelError
        The folder cannot be made or entered.
    """

    def __init__(self, folder: Folder, new: bool, overwrite: bool) -> None:
        self._folder = folder
        self._new = new
        self._overwrite = overwrite
        self._written: set[tuple[str, ...]] = set()
        self._new_files: list[tuple[str, ...]] = []
        self._open: OpenFolder | None = None

    def __enter__(self) -> Output:
        try:
            self._folder.path.mkdir(parents=True, exist_ok=not self._new)
            self._open = _entered(self._folder.path)
        except OSError as error:
            raise ModelError(
                f"Output folder {str(self._folder.display_path)!r} cannot be made: "
                f"{system_reason(error)}."
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.close()
        if self._new:
            with suppress(OSError):  # something is in it: it stays
                self._folder.path.rmdir()

    def write(self, name: str, pieces: Sequence[memoryview]) -> None:
        """Write a new file of these bytes; nothing is left of it when that fails.

        What this run has written it may write again. A file that is replaced is so at once, when
        the new one is complete; other names of the old one keep its content.

        Raises
        ------
        ModelError
            It is there and may not be replaced, is behind a link, or cannot be written.
        """
        assert self._open is not None, "a context"
        place = Place(self._folder, parts_below(self._folder, name))
        with (
            _reported(place, "written"),
            _walked(self._open.copy(), place.parts[:-1], make=True) as folder,
        ):
            old = self._replaced(place, folder)
            # What is to be replaced stays until the new file is complete.
            own = place.name if old is None else f".{secrets.token_hex(8)}"
            handle = folder.open(own, NEW)
            try:
                mode = None if old is None else stat.S_IMODE(old.st_mode)
                _write(handle, pieces, place, mode)
                if old is not None:
                    folder.replace(own, place.name)
            except BaseException:
                folder.unlink(own)
                raise
        if old is None:
            self._new_files.append(place.parts)
        self._written.add(place.parts)

    def withdraw(self) -> None:
        """Remove the files that this run has written and that were not there before."""
        assert self._open is not None, "a context"
        for *way, name in self._new_files:
            with suppress(OSError), _walked(self._open.copy(), way) as folder:
                folder.unlink(name)
        self._new_files.clear()

    def _replaced(self, place: Place, folder: OpenFolder) -> os.stat_result | None:
        try:
            found = folder.lstat(place.name)
        except FileNotFoundError:
            return None
        problem = _irreplaceable(found, self._overwrite or place.parts in self._written)
        if problem:
            raise ModelError(f"File {place} cannot be written: {problem}.")
        return found


def target_problem(place: Place, overwrite: bool) -> str | None:
    """Return why a file could not be written now, or None; nothing is made."""
    *way, name = (*place.folder.path.parts[1:], *place.parts)
    found = None
    with _reported(place, "written"):
        folder = open_root(place.folder.path)
        try:
            with suppress(FileNotFoundError):  # what is not there yet will be made
                for part in way:
                    below = folder.enter(part)
                    folder.close()
                    folder = below
                found = folder.lstat(name)
            folder.check_writable()
        finally:
            folder.close()
    problem = _irreplaceable(found, overwrite) if found else None
    return f"File {place} cannot be written: {problem}." if problem else None


def _irreplaceable(found: os.stat_result, overwrite: bool) -> str | None:
    if is_link(found):
        return "it is a link, and links are not followed"
    if not stat.S_ISREG(found.st_mode):
        return "it exists and is not a regular file"
    if not overwrite:
        return "it exists (--overwrite replaces files)"
    if not found.st_mode & 0o222:
        return "it exists and is write-protected"
    return None


def _write(
    handle: int, pieces: Sequence[memoryview], place: Place, mode: int | None = None
) -> None:
    """Write all bytes to an open file and close it."""
    total = sum(piece.nbytes for piece in pieces)
    written = 0
    try:
        try:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(handle, mode)
            for piece in pieces:
                at = 0
                while at < piece.nbytes:  # a write may end early: at a signal, or on a full disk
                    count = os.write(handle, piece[at : at + _PIECE])
                    if not count:
                        raise OSError(errno.EIO, os.strerror(errno.EIO))
                    at += count
                    written += count
        finally:
            os.close(handle)
    except OSError as error:
        raise ModelError(
            f"File {place} cannot be written: {system_reason(error)}; "
            f"wrote {written} of {total} bytes."
        ) from error


def system_reason(error: OSError) -> str:
    """Return why the system refuses something."""
    reason = error.strerror or str(error)
    return f"{reason}: the disk is full" if error.errno == errno.ENOSPC else reason


@contextmanager
def _reported(place: Place | str, done: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ModelError(f"File {place} cannot be {done}: {system_reason(error)}.") from error


@contextmanager
def _regular(handle: int, display_path: Place | str) -> Iterator[BinaryIO]:
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            kind = next((kind for is_kind, kind in _KINDS if is_kind(mode)), "something else")
            raise ModelError(f"Expected a regular file, got {display_path} ({kind}).")
    except BaseException:
        os.close(handle)
        raise
    with cast(BinaryIO, os.fdopen(handle, "rb")) as file:
        yield file


def _entered(folder: Path) -> OpenFolder:
    """Open a folder by a path without links: one that has come since is not followed."""
    with _walked(open_root(folder), folder.parts[1:]) as entered:
        return entered.copy()


@contextmanager
def _walked(folder: OpenFolder, parts: Iterable[str], make: bool = False) -> Iterator[OpenFolder]:
    """Open the folder that parts lead to from an open one, which is closed."""
    try:
        for part in parts:
            if make:
                folder.make(part)
            below = folder.enter(part)
            folder.close()
            folder = below
        yield folder
    finally:
        folder.close()
