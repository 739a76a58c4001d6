"""The commands `anydml judge` and `anydml suite`: array libraries, implementations of DirectML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import click

from anydml.cli._options import PathType, feature_level_option, to_bound, to_integer
from anydml.core._json import counted
from anydml.core._progress import show_progress
from anydml.core.errors import ArgumentError
from anydml.core.levels import FeatureLevel

_HELP: Final = {"help_option_names": ["-h", "--help"]}


@click.group(context_settings=_HELP, short_help="Judge an implementation of DirectML.")
def suite() -> None:
    """DirectML's conformance suite: write it, and judge an implementation by it."""


_operators = click.option(
    "--operator", "operators", metavar="NAME", multiple=True,
    help="Only the cases of this operator, or `graph`; may be repeated.",
)  # fmt: skip


@suite.command("write", short_help="Write the cases of the suite.")
@click.argument("folder", metavar="FOLDER", type=PathType(file_okay=False, path_type=Path))
@_operators
@feature_level_option
@click.option("--seed", type=to_integer, default=0, show_default=True, metavar="N",
              help="Make other cases.")  # fmt: skip
def write_suite(
    folder: Path, operators: tuple[str, ...], feature_level: FeatureLevel, seed: int
) -> None:
    """Write the suite into FOLDER, which must be new or empty.

    Each case is a model for DxDispatch with its files; index.json has the verdicts, tolerances and
    broken rules.
    """
    from anydml.suite import write

    try:
        count = write(folder, operators, feature_level, seed)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from error
    print(f"{counted(count, 'case')} written")


@suite.command("run", short_help="Judge an implementation by the suite.")
@click.argument("folder", metavar="FOLDER", type=PathType(path_type=Path))
@click.option("--with", "runner", metavar="RUNNER", required=True,
              help="The implementation: a device of `anydml devices`, dxdispatch[=PATH], directml, "
              "or MODULE:OBJECT with run(case).")  # fmt: skip
@_operators
@click.option("--expected", type=PathType(dir_okay=False, path_type=Path), metavar="FILE",
              help="Known differences, which do not fail the run.")  # fmt: skip
@click.option("--write-expected", type=PathType(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write the differences to FILE, for --expected.")  # fmt: skip
@click.option("--time-limit", type=to_bound, default=60.0, show_default=True, metavar="SECONDS",
              help="The most time that a case may take.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def run_suite(
    folder: Path,
    runner: str,
    operators: tuple[str, ...],
    expected: Path | None,
    write_expected: Path | None,
    time_limit: float,
    as_json: bool,
) -> None:
    """Judge an implementation of DirectML by the suite in FOLDER.

    Prints for each operator how many cases are right and how the others differ, and the first
    difference in full. The exit status is 1 if a difference is not expected.
    """
    from anydml.suite.run import run

    try:
        report = run(
            folder, runner, operators=operators, expected=expected, time_limit=time_limit,
            progress=show_progress,
        )  # fmt: skip
    except ArgumentError as error:
        raise click.UsageError(str(error)) from error
    if write_expected is not None:
        lines = (f"{line}\n" for line in report.expected_lines())
        write_expected.write_text("".join(lines), encoding="utf-8")
    print(json.dumps(report.as_json(), indent=1) if as_json else "\n".join(report.lines()))
    if report.unexpected:
        raise click.exceptions.Exit(1)


@click.command(short_help="Judge what array libraries promise.", context_settings=_HELP)
@click.argument("libraries", metavar="[LIBRARY|MODULE:FUNCTION]...", nargs=-1)
@click.option(
    "--function", "functions", multiple=True, metavar="NAME",
    help="Judge this function alone: top_k, scatter, ... Can be repeated.",
)  # fmt: skip
@click.option("--device", default="cpu", show_default=True, help="cpu or cuda.")
@click.option("--large", is_flag=True, help="Try arrays of more than 2^31 elements, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list of answers.")
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown.")
def judge(
    libraries: tuple[str, ...], functions: tuple[str, ...], device: str, large: bool,
    as_json: bool, markdown: bool,
) -> None:  # fmt: skip
    """Judge array libraries, all that are installed by default: ties, NaN, bad indices.

    Each promise of top_k, nonzero, scatter, gather, split and join is tried with hard cases. For a
    broken one the first case is printed. A line above the tables says what their words mean.

    A function of your own on NumPy's arrays is MODULE:FUNCTION, with --function top_k to judge it
    by. The exit status is 1 if anydml or such a function breaks a promise.
    """
    from anydml.judge.judging import judge as ask
    from anydml.judge.libraries import versions_here
    from anydml.judge.report import report

    try:
        answers = ask(libraries, functions, device, large=large)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        print(json.dumps([answer.to_json() for answer in answers], indent=1))
    else:
        print("\n".join(report(answers, versions_here(device), markdown)))
    ours = [answer for answer in answers if answer.library == "anydml" or ":" in answer.library]
    if any(answer.verdict not in ("yes", "none") for answer in ours):
        raise click.exceptions.Exit(1)
