"""One message instead of a traceback where the command `anydml` fails before it has begun.

The installed script and ``python -m anydml`` import this package first, which takes most of the
time of a short command: Ctrl-C or a malformed variable ends it there, outside of every function.
"""

import contextlib
import sys
from types import TracebackType


def _is_command() -> bool:
    program = (getattr(sys, "argv", None) or [""])[0].rpartition("/")[2]
    options = zip(sys.orig_argv, sys.orig_argv[1:], strict=False)
    module = ("-m", "anydml") in options or "-manydml" in sys.orig_argv
    return program == "anydml" or (program == "-m" and module)


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    # Before 3.12, Python raises RuntimeError for one while a class is made.
    if isinstance(error, KeyboardInterrupt) or isinstance(error.__cause__, KeyboardInterrupt):
        message, status = "\nError: interrupted", 130
    elif sys.flags.dev_mode:
        sys.__excepthook__(kind, error, trace)
        return
    else:  # a package that is missing, or a variable that is malformed
        message, status = f"Error: {error}", 2 if str(error).startswith("ANYDML_") else 1
        if isinstance(error, ModuleNotFoundError):
            message += "; install anydml again: pip install --force-reinstall ."
    if sys.stderr is not None:  # print() would take standard output
        with contextlib.suppress(OSError, UnicodeError):  # the pipe is closed
            print(message.encode("ascii", "backslashreplace").decode(), file=sys.stderr, flush=True)
    raise SystemExit(status)


if _is_command():
    sys.excepthook = _report
