"""A process of the judge: ``python -m anydml.judge LIBRARY DEVICE NUMBER...``."""

import sys

from anydml.judge.judging import answer_to

answer_to(sys.argv[1], sys.argv[2], [*map(int, sys.argv[3:])])
