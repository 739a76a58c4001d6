"""Folders that are open, and the files in them, reached without following a link.

There are two forms. `HandleFolder` opens each name relative to the folder's handle, so that nothing
that happens to a path meanwhile leads elsewhere. `PathFolder` is for systems without such calls
(Windows, Pyodide): it looks at a name before it opens it and compares the two, so that a folder on
the way that another program replaces by a link at that very moment may be followed.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol


def _flags(*names: str) -> int:
    """Join the flags of `os.open` that this system has."""
    flags = 0
    for name in names:
        flags |= getattr(os, name, 0)
    return flags


# On Linux a folder that may be entered but not listed can be passed through as well.
_ENTER: Final = _flags(
    "O_PATH" if hasattr(os, "O_PATH") else "O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC"
)
# Opening does not wait, so that a pipe cannot hold the run up before it is refused.
READ_USERS: Final = _flags(
    "O_RDONLY", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"
)
READ: Final = READ_USERS | _flags("O_NOFOLLOW")
NEW: Final = _flags(
    "O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"
)


class OpenFolder(Protocol):
    """An open folder; every name is one component and no link in the end."""

    def enter(self, name: str) -> OpenFolder:
        """Open a folder in this one."""

    def make(self, name: str) -> None:
        """Make a folder, unless it is there."""

    def open(self, name: str, flags: int) -> int:
        """Open a file in this folder, and return its descriptor."""

    def lstat(self, name: str) -> os.stat_result:
        """Return the status of a file, or of a link."""

    def replace(self, old: str, new: str) -> None:
        """Rename a file, in place of another one."""

    def unlink(self, name: str) -> None:
        """Remove a file."""

    def check_writable(self) -> None:
        """Raise `OSError` if no file can be made here."""

    def copy(self) -> OpenFolder:
        """Open the same folder once more."""

    def close(self) -> None:
        """Close the folder."""


def is_link(found: os.stat_result) -> bool:
    """Whether a status is that of a link, or of what acts as one on Windows (a junction)."""
    return stat.S_ISLNK(found.st_mode) or bool(getattr(found, "st_reparse_tag", 0))


def _link_error(name: str) -> OSError:
    return OSError(errno.ELOOP, f"{name!r} is a link, and links are not followed")


class HandleFolder:
    """An open folder by its handle."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @classmethod
    def root(cls, path: str) -> HandleFolder:
        """Open the folder that an absolute path begins with."""
        return cls(os.open(path, _ENTER))

    def enter(self, name: str) -> HandleFolder:
        """Open a folder in this one."""
        return HandleFolder(self.open(name, _ENTER))

    def make(self, name: str) -> None:
        """Make a folder, unless it is there."""
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=self._handle)

    def open(self, name: str, flags: int) -> int:
        """Open a file in this folder."""
        try:
            return os.open(name, flags, 0o666, dir_fd=self._handle)
        except OSError as error:
            # What a link gives depends on the flags and the system; the reason should not.
            with suppress(FileNotFoundError):
                if is_link(self.lstat(name)):
                    raise _link_error(name) from error
            raise

    def lstat(self, name: str) -> os.stat_result:
        """Return the status of a file, or of a link."""
        return os.lstat(name, dir_fd=self._handle)

    def replace(self, old: str, new: str) -> None:
        """Rename a file, in place of another one."""
        os.rename(old, new, src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def unlink(self, name: str) -> None:
        """Remove a file."""
        os.unlink(name, dir_fd=self._handle)

    def check_writable(self) -> None:
        """Raise `OSError` if no file can be made here."""
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=self._handle):
            read_only = os.fstatvfs(self._handle).f_flag & os.ST_RDONLY
            code = errno.EROFS if read_only else errno.EACCES
            raise OSError(code, os.strerror(code))

    def copy(self) -> HandleFolder:
        """Open the same folder once more."""
        return HandleFolder(os.dup(self._handle))

    def close(self) -> None:
        """Close the folder."""
        os.close(self._handle)


class PathFolder:
    """An open folder by its path."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def root(cls, path: str) -> PathFolder:
        """Open the folder that an absolute path begins with."""
        return cls(Path(path))

    def enter(self, name: str) -> PathFolder:
        """Open a folder in this one."""
        found = self._unlinked(name)
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return PathFolder(self._path / name)

    def make(self, name: str) -> None:
        """Make a folder, unless it is there."""
        with suppress(FileExistsError):
            os.mkdir(self._path / name)

    def open(self, name: str, flags: int) -> int:
        """Open a file in this folder."""
        before = None if flags & os.O_EXCL else self._unlinked(name)
        handle = os.open(self._path / name, flags, 0o666)
        try:
            now = os.lstat(self._path / name)
            opened = os.fstat(handle)
            if is_link(now) or any(_id(one) != _id(opened) for one in (before or now, now)):
                raise _link_error(name)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def lstat(self, name: str) -> os.stat_result:
        """Return the status of a file, or of a link."""
        return os.lstat(self._path / name)

    def replace(self, old: str, new: str) -> None:
        """Rename a file, in place of another one."""
        os.replace(self._path / old, self._path / new)

    def unlink(self, name: str) -> None:
        """Remove a file."""
        os.unlink(self._path / name)

    def check_writable(self) -> None:
        """Raise `OSError` if no file can be made here."""
        if not os.access(self._path, os.W_OK | os.X_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    def copy(self) -> PathFolder:
        """Return the same folder."""
        return self

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def _unlinked(self, name: str) -> os.stat_result:
        found = self.lstat(name)
        if is_link(found):
            raise _link_error(name)
        return found


def _id(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def has_handles() -> bool:
    """Whether this system opens a name relative to a folder's handle, and not through a link."""
    return os.open in os.supports_dir_fd and all(
        hasattr(os, name) for name in ("O_NOFOLLOW", "O_DIRECTORY", "fchmod", "fstatvfs")
    )


FORM: Final[Any] = HandleFolder if has_handles() else PathFolder


def open_root(path: Path) -> OpenFolder:
    r"""Open the folder that an absolute path begins with (``/``, ``C:\``)."""
    root: OpenFolder = FORM.root(path.parts[0])
    return root
