"""The benchmark: anydml and the installed peers in one process, every result checked.

``python -m benchmarks``, in the root of the repository, is the command.

A case makes a job (`cases`, `suites`, `recipes`, `jobs`); contestants do it (`ours`, `peers`); the
gate throws out wrong results (`gate`); the rest are timed in turns (`measure`) and reported
(`report`). Peers are used where they are installed.
"""
