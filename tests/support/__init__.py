"""What the tests share.

`jax_types`         JAX with and without 64-bit types
`poison`            arrays of any memory layout inside watched memory
`bits`              arrays compared as what they are in memory
`contents`          arrays full of ties, NaNs, zeros of both signs, denormals and extreme integers
`references`        the operators on arrays as plain loops, independent of every kernel
`reference_outputs` outputs by the reference implementation, and the comparison with them
`choices`           decisions of a seed, of Hypothesis or of a fuzzer
`descriptors`       valid descriptors of any operator, made from its definition by such decisions
`breakages`         a valid descriptor with one thing broken
`examples`          the examples that the pages print
`serialized`        graphs as ONNX Runtime's DirectML provider writes them (needs flatbuffers)
`strategies`        hypothesis strategies for all of these (needs hypothesis)
"""

from support.bits import assert_same_bits, bits
from support.contents import Flavour, contents, indices
from support.jax_types import jax_64_bits
from support.poison import Layout, Poisoned
from support.reference_outputs import assert_agrees, by_reference

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
