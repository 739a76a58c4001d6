"""DirectML's conformance suite as data, and what judges an implementation by it.

`write` makes a folder of cases from the definitions of the operators, and `run` judges an
implementation by them.
"""

from anydml.suite.case import Case, Refused
from anydml.suite.run import Report, run
from anydml.suite.write import write

__all__ = ["Case", "Refused", "Report", "run", "write"]
