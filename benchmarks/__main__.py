"""``python -m benchmarks``, and ``python -m benchmarks graphs``."""

import sys

from benchmarks.command import command

if sys.argv[1:] == ["graphs"]:
    from benchmarks import graphs
    from benchmarks.measure import Budget

    graphs.main(Budget(runs=10))
else:
    command(prog_name="python -m benchmarks")
