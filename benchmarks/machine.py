"""What a measurement was taken on and with."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import anydml as dml
from anydml._native import LEVEL
from benchmarks.peers import Peer

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def describe(peers: Iterable[Peer], missing: Iterable[str] = ()) -> dict[str, Any]:
    """Machine, versions, threads and date, for every output; `missing` are other peers."""
    versions = {"anydml": dml.__version__, "Python": platform.python_version()}
    versions["NumPy"] = np.__version__
    versions |= {peer.name: str(peer.version) for peer in peers}
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": cores(),
        "caches": caches(),
        "system": f"{platform.system()} {platform.machine()}",
        "instruction set": LEVEL,
        "threads": dml.get_num_threads(),
        "versions": versions,
        "not installed": [*missing],
    }


def in_one_line(machine: dict[str, Any]) -> str:
    """The description as a sentence for people."""
    caches_ = ", ".join(f"{size} {name}" for name, size in machine["caches"].items())
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    if missing := machine.get("not installed"):
        versions += f" (not installed: {', '.join(missing)})"
    return (
        (f"{machine['GPU']}; " if "GPU" in machine else "")
        + f"{machine['processor']}, {machine['cores']} cores"
        + (f" ({caches_})" if caches_ else "")
        + f", {machine['system']}; instruction set {machine['instruction set']}, "
        f"{machine['threads']} threads; {versions}; {machine['date']}"
    )


def processor() -> str:
    """The processor's name, with family and model where the name alone says little."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)
    }
    name = facts.get("model name", platform.machine())
    if "cpu family" in facts and "model" in facts:
        name += f" (family {facts['cpu family']}, model {facts['model']})"
    return name


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def caches() -> dict[str, str]:
    """Size of each data cache of the first core, if the system reports it."""
    found = {}
    for index in sorted(_CACHES.glob("index*")):
        try:
            kind = (index / "type").read_text().strip()
            level, size = (index / "level").read_text(), (index / "size").read_text()
        except OSError:
            continue
        if kind != "Instruction":
            found[f"L{level.strip()}"] = size.strip()
    return found
