"""What the tests share.

`jax_types`         JAX with and without 64-bit types
`poison`            arrays of any memory layout inside watched memory
`bits`              arrays compared as what they are in memory
`references`        the operators on arrays as plain loops, independent of every kernel
`reference_outputs` comparison with outputs by the reference implementation
`examples`          the examples that the pages print
`serialized`        graphs as ONNX Runtime's DirectML provider writes them (needs flatbuffers)
`strategies`        hypothesis strategies for all of these (needs hypothesis)
"""

from anydml.suite.contents import Flavour, contents, indices
from anydml.suite.expected import by_reference
from anydml.suite.layouts import Layout
from support.bits import assert_same_bits, bits
from support.jax_types import jax_64_bits
from support.poison import Poisoned
from support.reference_outputs import assert_agrees

__all__ = [
    "Flavour",
    "Layout",
    "Poisoned",
    "assert_agrees",
    "assert_same_bits",
    "bits",
    "by_reference",
    "contents",
    "indices",
    "jax_64_bits",
]
