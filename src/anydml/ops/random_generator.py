"""Random numbers: random bits from a counter and a key, by Philox 4x32-10."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from anydml.core._literals import RandomGeneratorTypeName
from anydml.core.enums import NamedEnum
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops._computed import Sized
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import enumeration, input_field, output_field
from anydml.ops._rules import equal

FAMILY = Family.CREATE


class RandomGeneratorType(NamedEnum):
    """``DML_RANDOM_GENERATOR_TYPE``: the algorithm."""

    PHILOX_4X32_10 = 0


_FACTORS: Final = (0xD2511F53, 0xCD9E8D57)
_STEPS: Final = (0x9E3779B9, 0xBB67AE85)
_ROUNDS: Final = 10


def _size_of_state(state: ArraySpec) -> Rules:
    for i, (size, got) in enumerate(
        zip((*(1 for _ in state.shape[1:]), 6), state.shape, strict=True)
    ):
        yield equal(f"InputStateTensor.Sizes[{i}]", got, size)


class RandomGenerator(Sized):
    """Uniformly distributed random bits: four numbers for each value of a counter.

    The state is a counter of 128 bits and a key of 64 bits, each with its lowest 32 bits first.
    Equal states give equal numbers. In the next state, the counter is increased by ``ceil(elements
    / 4)``, modulo 2^128.

    Parameters
    ----------
    input_state_tensor : TensorDesc
        The state: six elements along the last dimension.
    output_tensor : TensorDesc
        The random numbers, of any sizes.
    output_state_tensor : TensorDesc, optional
        The state for the next numbers, with the sizes of the input state.
    type : RandomGeneratorType or str
        The algorithm.
    """

    input_state_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    output_state_tensor: TensorDesc | None = output_field(optional=True)
    type: RandomGeneratorType | RandomGeneratorTypeName = enumeration(RandomGeneratorType)

    NAME = "RANDOM_GENERATOR"
    WORKING_BYTES = 64
    EXAMPLES = ({
        "input_state_tensor": [[[[0, 0, 0, 0, 0, 0]]]],
        "output_tensor": TensorDesc("UINT32", (1, 1, 2, 3)), "type": "PHILOX_4X32_10",
    },)  # fmt: skip
    ALSO_KNOWN_AS = "onnx.RandomUniform numpy.random.Philox torch.Generator jax.random.bits"

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        (state,) = inputs
        return Inferred.of(
            (ArraySpec(attributes["shape"], state.dtype), state), _size_of_state(state)
        )

    @staticmethod
    def compute(
        e: Engine, state: Array, *, shape: tuple[int, ...], type: Any
    ) -> tuple[Array, Array]:
        xp = e.xp
        words = [state.reshape(6)[i].astype(xp.uint64) for i in range(6)]
        size = prod(shape)
        blocks = -(-size // 4)
        counter = _added(xp, words[:4], xp.arange(blocks, dtype=xp.uint64))
        mixed = _mixed(xp, counter, words[4:])
        numbers = xp.stack(mixed, axis=-1).reshape(-1)[:size].reshape(shape)
        after = _added(xp, words[:4], xp.asarray([blocks], xp.uint64))
        following = xp.concatenate([*after, *(word.reshape(1) for word in words[4:])])
        return numbers.astype(xp.uint32), following.astype(xp.uint32).reshape(state.shape)


def _added(xp: Any, words: Sequence[Array], carry: Array) -> list[Array]:
    """The words of a number, lowest first, after adding less than 2^33 to it."""
    found = []
    for word in words:
        total = word + carry
        found.append(total & xp.uint64(0xFFFFFFFF))
        carry = total >> xp.uint64(32)
    return found


def _mixed(xp: Any, counter: Sequence[Array], key: Sequence[Array]) -> list[Array]:
    low, shift = xp.uint64(0xFFFFFFFF), xp.uint64(32)
    a, b, c, d = counter
    for _ in range(_ROUNDS):
        first, second = (
            xp.uint64(factor) * word for factor, word in zip(_FACTORS, (a, c), strict=True)
        )
        a, b, c, d = (
            (second >> shift) ^ b ^ key[0], second & low, (first >> shift) ^ d ^ key[1], first & low
        )  # fmt: skip
        key = [(word + xp.uint64(step)) & low for word, step in zip(key, _STEPS, strict=True)]
    return [a, b, c, d]
