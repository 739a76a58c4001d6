"""The command `anydml` from its start to its end, where neither Ctrl-C nor a wrong environment
leaves a traceback.

A package of its own: what is below `anydml` cannot be reached before `anydml` is imported, which
takes most of the time of a short command.
"""

import contextlib
import signal
import sys
from collections.abc import Callable
from types import TracebackType


def main() -> int:
    """Run the command line and return its exit status."""
    sys.excepthook = sys.__excepthook__
    try:
        from anydml.cli import main as run
    except (Exception, KeyboardInterrupt) as error:
        status = _failed(error)
    else:
        status = _interruptible(run)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: only the interpreter has to end
    return status


def guard_import() -> None:
    """Keep `python -m anydml` from showing a traceback when its import fails.

    It imports the whole package before it comes to `main`.
    """
    pairs = zip(sys.orig_argv, sys.orig_argv[1:], strict=False)
    if ("-m", "anydml") in pairs or "-manydml" in sys.orig_argv:
        sys.excepthook = _tell_and_exit


def _tell_and_exit(
    _kind: type[BaseException], error: BaseException, _trace: TracebackType | None
) -> None:
    raise SystemExit(_failed(error))


def _interruptible(run: Callable[[], int]) -> int:
    try:
        return run()
    except KeyboardInterrupt as error:
        return _failed(error)


def _failed(error: BaseException) -> int:
    """Tell why an import failed; the exit status."""
    if isinstance(error, KeyboardInterrupt):
        _tell("\nError: interrupted")
        return 130
    # A package that is missing, or a variable that is malformed.
    _tell(f"Error: {error}")
    return 2 if str(error).startswith("ANYDML_") else 1


def _tell(text: str) -> None:
    if sys.stderr is None:  # it was closed; print() would take standard output
        return
    with contextlib.suppress(OSError, UnicodeError):  # nobody reads
        print(text.encode("ascii", "backslashreplace").decode(), file=sys.stderr, flush=True)
