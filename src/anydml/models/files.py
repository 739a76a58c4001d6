"""Files of a model, reached one folder after another, so that no link leads out, whenever it came.

A path is walked from a folder that is open: each component is opened relative to the one before and
must be no link (`open_folders`). A check of the whole path before it is opened would leave time to
put a link there.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from anydml.core.errors import ModelError
from anydml.models.open_folders import NEW, READ, READ_USERS, OpenFolder, is_link, open_root
from anydml.models.paths import Folder, parts_below

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
    """A file's identity, which changes when its data do."""

    device: int
    inode: int
    size: int
    modified: int


@dataclass(frozen=True)
class Place:
    """A file below a folder: the folder, and the components of the way from there."""

    folder: Folder
    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.parts[-1]

    @property
    def display_path(self) -> str:
        """The path as the user knows it."""
        return str(self.folder.display_path.joinpath(*self.parts))

    def __str__(self) -> str:
        return repr(self.display_path)

    @contextmanager
    def open_file(self) -> Iterator[BinaryIO]:
        """A regular file, open for reading.

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
    """A regular file of the user's, who may have put links on the way, open for reading.

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
    """The state of an open file."""
    found = os.fstat(file.fileno())
    return State(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


class Output:
    """The folder that a run writes to, made and open while it is a context.

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
        self._written.add(place.parts)

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
    """Why a file could not be written now, or None; nothing is made."""
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
    """Why the system refuses something."""
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
