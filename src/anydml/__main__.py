"""The command ``anydml``, also as ``python -m anydml``."""

import signal
import sys

from anydml.cli import command as cli


def main() -> int:
    """Run the command line and return its exit status."""
    status = cli.main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the interpreter has to end
    return status


if __name__ == "__main__":
    sys.exit(main())
