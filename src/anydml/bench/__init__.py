"""`anydml bench`: this library beside what is installed, in one process, every result checked.

A case makes a job (`cases`, `suites`, `recipes`, `jobs`); contestants do it (`ours`, `peers`); the
gate throws out wrong results (`gate`); the rest are timed in turns (`measure`) and told (`report`,
`plot`). The peers and matplotlib are imported only here, and only when they are installed.
"""
