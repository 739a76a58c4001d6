"""Code that XLA has compiled, kept on disk for later processes."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import jax
from jax.experimental.serialize_executable import deserialize_and_load, serialize


def compiled(lowered: Any, options: object, device: Any, folder: str) -> Any:
    """Compile a lowered function, or load what an earlier process compiled.

    Parameters
    ----------
    lowered : jax.stages.Lowered
        What `jax.jit` lowers.
    options : object
        Its compiler options, by their `repr`.
    device : jax.Device
        Where it runs.
    folder : str
        Where compiled code is kept, readable by its owner alone; empty for nowhere.
    """
    if not folder:
        return lowered.compile()
    facts = (jax.__version__, version("jaxlib"), device.client.platform_version,
             device.device_kind, repr(options), lowered.as_text())  # fmt: skip
    path = Path(folder, "xla", hashlib.sha256("\0".join(facts).encode()).hexdigest())
    with suppress(Exception):  # none, or one that this process cannot load: it is compiled anew
        return deserialize_and_load(path.read_bytes(), lowered.in_tree, lowered.out_tree)
    code = lowered.compile()
    with suppress(Exception):  # a full disk, or code that cannot be kept
        _write(path, serialize(code)[0])
    return code


def _write(path: Path, octets: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            file.write(octets)
            file.flush()
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
