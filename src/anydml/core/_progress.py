"""Progress lines on a terminal."""

from __future__ import annotations

import shutil
import sys


def show_progress(line: str = "") -> None:
    """Show a line in place of the last one, or nothing; only where standard error is a terminal."""
    if sys.stderr is not None and sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 1
        print(f"\r\033[K{line[:width]}", end="", file=sys.stderr, flush=True)
