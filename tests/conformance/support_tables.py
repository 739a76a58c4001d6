"""The pages' support tables, transcribed from the pages and not from `_pages.json`.

operator → level of the row → tensor → (ranks, data types). Between two rows the lower one holds;
below the first the operator does not exist.
"""

LEVELS = [
    "1_0", "2_0", "2_1", "3_0", "3_1", "4_0", "4_1", "5_0", "5_1", "5_2", "6_0", "6_1", "6_2",
    "6_3", "6_4",
]  # fmt: skip

TYPES = [
    "FLOAT64", "FLOAT32", "FLOAT16", "INT64", "INT32", "INT16", "INT8", "UINT64", "UINT32",
    "UINT16", "UINT8", "UINT4", "INT4",
]  # fmt: skip

FLOATS = {"FLOAT32", "FLOAT16"}
FIRST_SLABS = {"FLOAT32", "FLOAT16", "INT32", "INT16", "UINT32", "UINT16"}
LOW = {"FLOAT32", "FLOAT16", "INT32", "INT16", "INT8", "UINT32", "UINT16", "UINT8"}
ALL = LOW | {"FLOAT64", "INT64", "UINT64"}
TOP = LOW | {"INT64", "UINT64"}
INDEX = {"INT64", "INT32", "UINT64", "UINT32"}
U32 = {"UINT32"}
U64 = {"UINT64", "UINT32"}

FOUR = {4}
FOUR_FIVE = {4, 5}
ANY = set(range(1, 9))
FROM_TWO = set(range(2, 9))


def _scatter(ranks, data, index):
    return {
        "InputTensor": (ranks, data),
        "IndicesTensor": (ranks, index),
        "UpdatesTensor": (ranks, data),
        "OutputTensor": (ranks, data),
    }


def _gather(ranks, data, index):
    return {
        "InputTensor": (ranks, data),
        "IndicesTensor": (ranks, index),
        "OutputTensor": (ranks, data),
    }


def _top_k(ranks, data, index):
    return {
        "InputTensor": (ranks, data),
        "OutputValueTensor": (ranks, data),
        "OutputIndexTensor": (ranks, index),
    }


def _split(ranks, data):
    return {"InputTensor": (ranks, data), "OutputTensors": (ranks, data)}


def _slice(ranks, data):
    return {"InputTensor": (ranks, data), "OutputTensor": (ranks, data)}


def _join(ranks, data):
    return {"InputTensors": (ranks, data), "OutputTensor": (ranks, data)}


TABLES = {
    "SCATTER": {
        "1_0": _scatter(FOUR, FLOATS, U32),
        "2_1": _scatter(FOUR, LOW, U32),
        "3_0": _scatter(ANY, LOW, INDEX),
        "4_1": _scatter(ANY, ALL, INDEX),
    },
    "SCATTER_ND": {
        "2_1": _scatter(FOUR, LOW, U32),
        "3_0": _scatter(ANY, LOW, INDEX),
        "4_1": _scatter(ANY, ALL, INDEX),
    },
    "NONZERO_COORDINATES": {
        "3_0": {
            "InputTensor": (FOUR_FIVE, LOW),
            "OutputCountTensor": (FOUR_FIVE, U32),
            "OutputCoordinatesTensor": (FOUR_FIVE, U32),
        },
        "4_0": {
            "InputTensor": (ANY, LOW),
            "OutputCountTensor": (ANY, U32),
            "OutputCoordinatesTensor": (FROM_TWO, U32),
        },
    },
    "TOP_K": {
        "2_0": _top_k(FOUR, FLOATS, U32),
        "2_1": _top_k(FOUR, LOW, U32),
        "3_1": _top_k(ANY, LOW, U32),
        "5_0": _top_k(ANY, TOP, U64),
    },
    "TOP_K1": {
        "2_1": _top_k(FOUR, LOW, U32),
        "3_1": _top_k(ANY, LOW, U32),
        "5_0": _top_k(ANY, TOP, U64),
    },
    "CAST": {
        "1_0": _slice(FOUR, FLOATS | {"INT16", "INT8", "UINT16", "UINT8"}),
        "3_0": _slice(FOUR, ALL - {"FLOAT64"}),
        "3_1": _slice(ANY, ALL - {"FLOAT64"}),
        "4_1": _slice(ANY, ALL),
    },
    "ELEMENT_WISE_IDENTITY": {
        "1_0": _slice(FOUR_FIVE, FLOATS),
        "2_1": _slice(FOUR_FIVE, LOW),
        "3_0": _slice(ANY, LOW),
        "4_1": _slice(ANY, ALL),
    },
    "FILL_VALUE_CONSTANT": {
        "2_1": {"OutputTensor": (FOUR, LOW)},
        "4_0": {"OutputTensor": (ANY, LOW)},
        "4_1": {"OutputTensor": (ANY, ALL)},
    },
    "FILL_VALUE_SEQUENCE": {
        "2_1": {"OutputTensor": (FOUR, LOW)},
        "4_0": {"OutputTensor": (ANY, LOW)},
        "5_0": {"OutputTensor": (ANY, TOP)},
    },
    "PADDING": {
        "1_0": _slice(FOUR_FIVE, FLOATS),
        "2_1": _slice(FOUR_FIVE, LOW),
        "3_1": _slice(ANY, LOW),
        "5_0": _slice(ANY, ALL),
    },
    "PADDING1": {"5_0": _slice(ANY, ALL)},
    "SLICE": {
        "1_0": _slice(FOUR_FIVE, FIRST_SLABS),
        "2_1": _slice(FOUR_FIVE, LOW),
        "3_0": _slice(ANY, LOW),
        "4_1": _slice(ANY, ALL),
    },
    "SLICE1": {
        "2_1": _slice(FOUR_FIVE, LOW),
        "3_0": _slice(ANY, LOW),
        "4_1": _slice(ANY, ALL),
    },
    "REVERSE_SUBSEQUENCES": {
        level: _slice(ranks, types) | {"SequenceLengthsTensor": (ranks, lengths)}
        for level, ranks, types, lengths in (
            ("2_1", FOUR, LOW, U32),
            ("3_0", FOUR_FIVE, LOW, U32),
            ("4_0", ANY, LOW, U32),
            ("5_0", ANY, ALL, U64),
        )
    },
    "UPSAMPLE_2D": {"1_0": _slice(FOUR_FIVE, FLOATS)},
    "TILE": {
        "1_0": _slice(FOUR, FLOATS),
        "2_1": _slice(FOUR, LOW),
        "3_1": _slice(ANY, LOW),
        "4_1": _slice(ANY, TOP),
    },
    "SPLIT": {
        "1_0": _split(FOUR, FIRST_SLABS),
        "2_1": _split(FOUR, LOW),
        "3_0": _split(ANY, LOW),
        "4_1": _split(ANY, ALL),
    },
    "JOIN": {
        "1_0": _join(FOUR, FIRST_SLABS),
        "2_1": _join(FOUR, LOW),
        "3_0": _join(FOUR_FIVE, LOW),
        "4_1": _join(ANY, ALL),
    },
    "GATHER": {
        "1_0": _gather(FOUR, FLOATS, U32),
        "2_1": _gather(FOUR, LOW, U32),
        "3_0": _gather(ANY, LOW, INDEX),
        "4_1": _gather(ANY, ALL, INDEX),
    },
    "GATHER_ELEMENTS": {
        "2_1": _gather(FOUR, LOW, U32),
        "3_0": _gather(ANY, LOW, INDEX),
        "4_1": _gather(ANY, ALL, INDEX),
    },
    "GATHER_ND": {
        "2_1": _gather(FOUR, LOW, U32),
        "3_0": _gather(ANY, LOW, INDEX),
        "4_1": _gather(ANY, ALL, INDEX),
    },
    "GATHER_ND1": {
        "3_0": _gather(ANY, LOW, INDEX),
        "4_1": _gather(ANY, ALL, INDEX),
    },
}


def row_at(operator, level):
    """What an operator accepts at a level; None below the level that introduced it."""
    found = None
    for name in LEVELS[: LEVELS.index(level) + 1]:
        found = TABLES[operator].get(name, found)
    return found


def accepts(operator, level, ranks, types):
    """Whether the row takes these ranks and types, given by tensor name."""
    row = row_at(operator, level)
    return row is not None and all(
        ranks[name] in row[name][0] and types[name] in row[name][1] for name in row
    )


def lowest_level(operator, ranks, types):
    return next((level for level in LEVELS if accepts(operator, level, ranks, types)), None)
