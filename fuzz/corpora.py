"""The inputs that are kept: an archive for each target, and findings as files of their own."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent


def inputs(target: str) -> dict[str, bytes]:
    """Every input of a target by its name, findings last."""
    found = {}
    if archive(target).exists():
        with tarfile.open(archive(target)) as members:
            for member in members:
                stream = members.extractfile(member)
                assert stream is not None
                found[member.name] = stream.read()
    return found | {path.name: path.read_bytes() for path in sorted(findings(target).glob("*"))}


def write(target: str, kept: Mapping[str, bytes]) -> None:
    """Replace a target's archive; the same inputs make the same bytes."""
    with tarfile.open(archive(target), "w:xz", preset=9) as members:
        for name, data in sorted(kept.items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            members.addfile(member, io.BytesIO(data))


def archive(target: str) -> Path:
    """Where the inputs of a target are."""
    return FOLDER / "corpus" / f"{target}.tar.xz"


def findings(target: str) -> Path:
    """The folder of inputs that failed once."""
    return FOLDER / "findings" / target
