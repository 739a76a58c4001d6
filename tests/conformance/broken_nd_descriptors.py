"""Descriptors of the operators with index tuples that break one rule each."""

from broken_descriptors import Broken, F, T, U


def _nd(op, block):
    data, lookup = (1, 1, 2, 5), (1, 1, 3, 2)
    yield Broken(
        op,
        "InputDimensionCount above the rank",
        {"InputDimensionCount": 5},
        "InputDimensionCount",
        "1..4 (InputTensor.DimensionCount)",
        5,
    )
    for count, tensor in (("InputDimensionCount", "InputTensor"),
                          ("IndicesDimensionCount", "IndicesTensor")):  # fmt: skip
        yield Broken(
            op,
            f"{count} 0",
            {count: 0},
            count,
            f"1..4 ({tensor}.DimensionCount)",
            0,
            (count,),
        )
    yield Broken(
        op,
        "IndicesDimensionCount above the rank",
        {"IndicesDimensionCount": 5},
        "IndicesDimensionCount",
        "1..4 (IndicesTensor.DimensionCount)",
        5,
    )
    yield Broken(
        op,
        "a tuple that is too long",
        {"IndicesTensor": T(U, (1, 1, 3, 3))},
        "IndicesTensor.Sizes[-1]",
        "1..2 (InputDimensionCount)",
        3,
    )
    yield Broken(
        op,
        "sizes that IndicesDimensionCount leaves out",
        {"IndicesTensor": T(U, (4, 1, 3, 2))},
        "IndicesTensor.Sizes[0]",
        "1 (left out by IndicesDimensionCount = 2)",
        4,
    )
    yield Broken(
        op,
        "a block of other sizes",
        {block: T(F, (1, 1, 1, 4))},
        f"{block}.Sizes[3]",
        "3 (from the sizes of IndicesTensor",
        4,
    )
    yield Broken(
        op,
        "a block with leading sizes",
        {block: T(F, (1, 8, 1, 3))},
        f"{block}.Sizes[1]",
        "1 (from the sizes of IndicesTensor",
        8,
    )
    yield Broken(
        op,
        "type of the block",
        {block: T("FLOAT16", (1, 1, 1, 3))},
        f"{block}.DataType",
        "FLOAT32 (InputTensor.DataType)",
        "FLOAT16",
    )
    yield Broken(
        op,
        "rank of the indices",
        {"IndicesTensor": T(U, lookup[1:])},
        "IndicesTensor.DimensionCount",
        "4 (InputTensor.DimensionCount)",
        3,
    )
    wide = (6, *data[1:])
    changes = {"InputTensor": T(F, wide)}
    if op == "SCATTER_ND":
        changes["OutputTensor"] = T(F, wide)
    yield Broken(
        op,
        "sizes that InputDimensionCount leaves out",
        changes,
        "InputTensor.Sizes[0]",
        "1 (left out by InputDimensionCount = 2)",
        6,
    )
    # Tuples of one coordinate into {2,5} leave rows of 5, and there is no place for {3,5} in one.
    short = {"InputTensor": T(F, (2, 5)), "IndicesTensor": T(U, (3, 1)), block: T(F, (3, 2))}
    if op == "SCATTER_ND":
        short["OutputTensor"] = T(F, (2, 5))
    yield Broken(
        op,
        "the leading instead of the trailing sizes",
        short,
        f"{block}.Sizes[1]",
        "5 (from the sizes of IndicesTensor",
        2,
    )


def _scatter_nd():
    yield from _nd("SCATTER_ND", "UpdatesTensor")
    yield Broken(
        "SCATTER_ND",
        "size of the output",
        {"OutputTensor": T(F, (1, 1, 2, 6))},
        "OutputTensor.Sizes[3]",
        "5 (InputTensor.Sizes[3])",
        6,
    )
    yield Broken(
        "SCATTER_ND",
        "type of the output",
        {"OutputTensor": T("FLOAT16", (1, 1, 2, 5))},
        "OutputTensor.DataType",
        "FLOAT32 (InputTensor.DataType)",
        "FLOAT16",
    )


def _gather_nd1():
    op = "GATHER_ND1"
    # Base: input {4,2,5}, indices {4,3,2}, output {4,3}, one batch dimension, counts 3 and 3.
    yield Broken(
        op,
        "as many batch dimensions as there are",
        {"BatchDimensionCount": 3},
        "BatchDimensionCount",
        "0..2 (below InputDimensionCount",
        3,
        ("IndicesTensor.Sizes[-1]",),
    )
    yield Broken(
        op,
        "as many batch dimensions as the indices have",
        {"InputDimensionCount": 4, "IndicesDimensionCount": 2, "BatchDimensionCount": 2,
         "IndicesTensor": T(U, (1, 1, 3, 2))},
        "BatchDimensionCount",
        "0..1 (below InputDimensionCount",
        2,
    )  # fmt: skip
    yield Broken(
        op,
        "batches of other sizes",
        {"IndicesTensor": T(U, (1, 6, 3, 2)), "OutputTensor": T(F, (1, 1, 6, 3))},
        "IndicesTensor.Sizes[1]",
        "4 (batch size of InputTensor)",
        6,
    )
    yield Broken(
        op,
        "second batches of other sizes",
        {"BatchDimensionCount": 2, "IndicesTensor": T(U, (1, 4, 3, 1))},
        "IndicesTensor.Sizes[2]",
        "2 (batch size of InputTensor)",
        3,
    )
    yield Broken(
        op,
        "a tuple longer than a batch's rank",
        {"IndicesTensor": T(U, (1, 4, 3, 3))},
        "IndicesTensor.Sizes[-1]",
        "1..2 (InputDimensionCount - BatchDimensionCount)",
        3,
    )
    yield Broken(
        op,
        "size of the output",
        {"OutputTensor": T(F, (1, 1, 4, 9))},
        "OutputTensor.Sizes[3]",
        "3 (from the sizes of IndicesTensor",
        9,
    )


BROKEN_ND = [*_scatter_nd(), *_nd("GATHER_ND", "OutputTensor"), *_gather_nd1()]
