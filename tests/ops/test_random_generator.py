"""RANDOM_GENERATOR against the published results of Philox 4x32-10, and its page's example."""

import numpy as np
import pytest

import anydml as dml

DEVICE = dml.Device("cpu")


def generated(state, sizes):
    state = np.array(state, np.uint32).reshape(1, 1, 1, 6)
    desc = dml.RandomGenerator.with_outputs(
        input_state_tensor=dml.TensorDesc.from_array(state),
        output_tensor=dml.TensorDesc("UINT32", sizes), type="PHILOX_4X32_10",
    )  # fmt: skip
    desc = dml.RandomGenerator(**{
        "input_state_tensor": desc.input_state_tensor, "output_tensor": desc.output_tensor,
        "output_state_tensor": desc.input_state_tensor, "type": "PHILOX_4X32_10",
    })  # fmt: skip
    numbers, after = DEVICE.create_operator(desc).compile()(state)
    return numbers.ravel().tolist(), after.ravel().tolist()


# Of the authors' library, Random123 (`kat_vectors`): counter and key, and four numbers.
@pytest.mark.parametrize(
    ("state", "numbers"),
    [
        ((0,) * 6, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 6, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_published_numbers(state, numbers):
    assert generated(state, (1, 1, 2, 2))[0] == [*numbers]
    assert generated(state, (1, 1, 1, 3))[0] == [*numbers[:3]]


def test_the_counter_goes_on():
    """The page's example: so many numbers add 324,855 to the counter."""
    words = [0x74746C65, 0x6D536561, 0x6F46726F, 0x48656C6C]
    _, after = generated([*words, 7, 8], (3, 3, 20, 7219))
    assert after == [0x74746C65 + 324_855, *words[1:], 7, 8]
    assert generated([0xFFFFFFFF] * 4 + [1, 2], (1, 1, 1, 5))[1] == [1, 0, 0, 0, 1, 2]
    numbers, _ = generated([0xFFFFFFFF, 0xFFFFFFFF, 5, 0, 1, 2], (1, 1, 1, 8))
    assert numbers[4:] == generated([0, 0, 6, 0, 1, 2], (1, 1, 1, 4))[0]
