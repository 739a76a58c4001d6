"""Random valid nodes of ONNX operators: versions, types, shapes and attributes.

`GENERATORS` has a function for each operator. It takes a `Chooser` and returns the inputs (arrays;
None for one that is left out; `Parameter` for one that is an initializer in most models), and the
attributes, of which those that are None are left out.
"""

from random_nodes import elements, networks
from random_nodes.chooser import GENERATORS, Parameter, random_node

__all__ = ["GENERATORS", "Parameter", "elements", "networks", "random_node"]
