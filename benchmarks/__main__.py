"""``python -m benchmarks``."""

from benchmarks.command import command

command(prog_name="python -m benchmarks")
