"""``python -m anydml.pydirectml SCRIPT [ARGUMENT …]``: a program for PyDirectML, as it is.

``--save-outputs DIR`` before SCRIPT saves the outputs of each ``Device.compute`` as ``.npy`` files.

Exit status: the program's; 1 where anydml refuses something, 2 for wrong usage, 130 after Ctrl-C.
"""

from __future__ import annotations

import runpy
import sys
import traceback
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np

from anydml import pydirectml
from anydml.core.errors import AnyDMLError, MissingPackageError
from anydml.pydirectml._windows import has_display, needs_display, open_no_windows

_USAGE: Final = "Usage: python -m anydml.pydirectml [--save-outputs DIR] SCRIPT [ARGUMENT ...]"
_HELP: Final = """\
Runs a program that imports pydirectml, on the device ANYDML_DEVICE.

--save-outputs DIR  Save output J of call I of Device.compute as DIR/computeI_outputJ.npy."""


def main(arguments: list[str]) -> int:
    """Run the program that the first argument names, with the rest as its arguments."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(f"{_USAGE}\n\n{_HELP}")
        return 0
    folder = None
    if arguments[:1] == ["--save-outputs"]:
        folder, arguments = Path(*arguments[1:2]).resolve(), arguments[2:]
    if not arguments or arguments[0].startswith("-"):
        return _fail(_USAGE, 2)
    script = Path(arguments[0])
    if not script.is_file():
        return _fail(f"{_USAGE}\n\nError: SCRIPT: expected a file, got {arguments[0]!r}", 2)
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            return _fail(f"Error: --save-outputs: {error}", 1)
        _save_outputs(folder)
    sys.modules["pydirectml"] = pydirectml
    sys.argv[:] = arguments
    if not sys.flags.safe_path:
        sys.path[0] = str(script.resolve().parent)
    if not has_display():
        open_no_windows()
    try:
        runpy.run_path(str(script), run_name="__main__")
    except KeyboardInterrupt:
        return _fail("\nError: interrupted", 130)
    except Exception as error:
        trace = _of_script(error.__traceback__, str(script))
        if isinstance(error, AnyDMLError) and trace is not None and not sys.flags.dev_mode:
            return _fail(f"Error: {script}, line {trace.tb_lineno}: {error}", 1)
        if isinstance(error, ModuleNotFoundError) and error.name == "PIL":
            return _fail(f"Error: {MissingPackageError(str(script), 'PIL', 'anydml[image]')}", 1)
        if needs_display(error) and trace is not None:
            where = f"{script}, line {trace.tb_lineno}"
            return _fail(f"Error: {where}: {error}; tkinter needs one, such as xvfb-run's", 1)
        traceback.print_exception(error.with_traceback(trace))
        return 1
    return 0


def _save_outputs(folder: Path) -> None:
    """Let `Device.compute` save its results as well."""
    compute, calls = pydirectml.Device.compute, count()

    def save(*arguments: Any, **keywords: Any) -> Any:
        results = compute(*arguments, **keywords)
        call = next(calls)
        for i, result in enumerate(results):
            np.save(folder / f"compute{call}_output{i}.npy", np.array(result))
        return results

    setattr(pydirectml.Device, "compute", save)  # noqa: B010 (a method, for mypy)


def _of_script(trace: TracebackType | None, script: str) -> TracebackType | None:
    """The part of a traceback that begins in the script."""
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    return trace


def _fail(message: str, status: int) -> int:
    print(message, file=sys.stderr, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
