"""`anydml run --example OPERATOR`."""

from pathlib import Path

import numpy as np
import pytest

import anydml as dml
from anydml import cli
from anydml.models import run_model
from anydml.models.examples import example_model
from anydml.ops._computed import Computed
from anydml.registry import OPERATORS
from support.computed import run

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"


def test_an_example_of_the_page(capsys):
    assert cli.main(["run", "--example", "torch.topk"]) == 0
    assert capsys.readouterr().out == (MODELS / "top_k1.out").read_text()


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
    kind = OPERATORS[operator]
    assert any(item.desc.NAME == kind.NAME for item in model.dispatchables.values())
    if issubclass(kind, Computed):
        desc, inputs = kind.example_call()
        outputs = run(dml.Device("cpu"), desc, [*inputs.values()])
        names = [name for name in results if name not in inputs]
        for name, output in zip(names, outputs, strict=True):
            np.testing.assert_array_equal(results[name], output)


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
