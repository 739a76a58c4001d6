"""Imports of packages that the extras of pyproject.toml install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from anydml.core.errors import MissingPackageError


@contextmanager
def name_missing_package(user: str, install: str) -> Iterator[None]:
    """Say which package is missing, and how to install it, where an import in the block fails.

    Parameters
    ----------
    user : str
        What needs the package; the message begins with it.
    install : str
        What ``pip install`` takes to install it, as ``anydml[jax]``.

    Raises
    ------
    MissingPackageError
        A module of another package was not found.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "anydml").partition(".")[0]
        if package == "anydml" or isinstance(error, MissingPackageError):
            raise
        raise MissingPackageError(user, package, install) from error
