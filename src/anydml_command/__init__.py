"""The command `anydml` from its start to its end, where Ctrl-C leaves no traceback either.

A package of its own: what is below `anydml` cannot be reached before `anydml` is imported, which
takes most of the time of a short command.
"""

import signal
import sys


def main() -> int:
    """Run the command line and return its exit status."""
    try:
        from anydml.cli import main as run

        status = run()
    except KeyboardInterrupt:
        print("\nError: interrupted", file=sys.stderr)
        status = 130
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: only the interpreter has to end
    return status
