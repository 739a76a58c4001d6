"""`anydml run --example OPERATOR`."""

import numpy as np
import pytest

import anydml as dml
from anydml.cli import command as cli
from anydml.models import run_model
from anydml.models.examples import example_model
from anydml.ops._examples import examples_of
from anydml.ops._registry import OPERATORS
from support.computed import run


def test_examples_of_a_page(capsys):
    assert cli.main(["run", "--example", "torch.topk"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == (
        "Resource 'InputTensor (example 1)': 0, 1, 10, 11, 3, 2, 9, 8, 4, 5, 6, 7"
    )
    assert printed[-1] == "Resource 'OutputIndexTensor (example 4)': 0, 1, 2, 0, 1, 2, 0, 1, 2"
    assert len(printed) == 12


def test_an_example_of_a_definition(capsys):
    assert cli.main(["run", "--example", "ElementWiseSqrt"]) == 0
    assert capsys.readouterr().out == (
        "Resource 'InputTensor': 0.25, 0.5, 1, 4\nResource 'OutputTensor': 0.5, 0.707107, 1, 2\n"
    )


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_has_an_example_that_runs(operator):
    model = example_model(operator)
    assert not model.warnings
    results = run_model(model, write=lambda _: None)
    examples = [*examples_of(OPERATORS[operator])]
    assert [item.desc for item in model.dispatchables.values()] == [e.desc for e in examples]
    left = iter(results.values())
    for desc, inputs, printed in examples:
        found = [next(left) for _ in desc.tensors()]
        outputs = [*printed.values()] or run(dml.Device("cpu"), desc, [*inputs.values()])
        for result, expected in zip(found, [*inputs.values(), *outputs], strict=True):
            np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected MODEL.json, GRAPH.bin, - (standard input) or --example OPERATOR, got none"),
        (
            ["--example", "split", "model.json"],
            "expected MODEL.json, GRAPH.bin, - (standard input) or",
        ),
        (["--example", "spli"], "did you mean 'SPLIT'?"),
    ],
)
def test_wrong_usage(arguments, message, capsys):
    assert cli.main(["run", *arguments]) == 2
    assert message in capsys.readouterr().err
