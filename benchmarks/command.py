"""The command ``python -m benchmarks``, run in the root of the repository."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from anydml.core._progress import show_progress
from anydml.core.errors import DeviceError
from anydml.devices.device import Device
from anydml.devices.threads import get_num_threads
from benchmarks import machine, ours, peers, report, stored
from benchmarks.cases import Case, chosen
from benchmarks.gate import Gate
from benchmarks.jobs import Job
from benchmarks.measure import Budget, Contestant, take_turns
from benchmarks.places import Cpu, Place
from benchmarks.suites import SUITES, Suite, suites_named

_FILE = click.Path(dir_okay=False, writable=True, path_type=Path)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("cases", metavar="[CASE]...", nargs=-1)
@click.option(
    "--suite",
    "suite_names",
    type=click.Choice([*SUITES, "all"]),
    multiple=True,
    default=("table",),
    show_default=True,
    help="Which cases, and what they are compared with; may be given several times.",
)
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    show_default=True,
    help="Where to measure; a GPU has suites of its own, and device times.",
)
@click.option("--list", "only_list", is_flag=True, help="Print the cases and stop.")
@click.option("--peers/--no-peers", "with_peers", default=True, help="Run what else is installed.")
@click.option(
    "--repeat",
    type=click.IntRange(1),
    default=Budget.runs,
    show_default=True,
    help="The most timed runs of each contestant.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0),
    default=Budget.seconds,
    show_default=True,
    help="Time for each contestant; everybody gets 3 runs at least.",
)
@click.option(
    "--from",
    "from_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Measure nothing: show what --json has written.",
)
@click.option("--json", "json_file", type=_FILE, help="Write everything to a JSON file.")
@click.option("--markdown", "markdown_file", type=_FILE, help="Write Markdown tables.")
def command(
    cases: tuple[str, ...],
    suite_names: tuple[str, ...],
    device: str,
    only_list: bool,
    with_peers: bool,
    repeat: int,
    seconds: float,
    from_file: Path | None,
    json_file: Path | None,
    markdown_file: Path | None,
) -> None:
    """Compare anydml with NumPy, PyTorch, ONNX Runtime, OpenVINO and JAX, if installed.

    Contestants take turns in one process on the same inputs. Every result is checked first, and a
    wrong one gets no time. CASE is a name or a pattern like 'top_k/*'; all cases by default.
    """
    selected = [
        (suite, found)
        for suite in suites_named(suite_names, device)
        if (found := chosen(suite.cases, cases))
    ]
    if not selected:
        suite_list = ", ".join(suite_names)
        raise click.UsageError(
            f"no case of suite {suite_list} is named {' or '.join(cases)}; --list prints the names"
        )
    if only_list:
        _print_list(selected)
        return
    for path in (json_file, markdown_file):
        if path and not path.absolute().parent.is_dir():
            raise click.UsageError(f"{path} cannot be written: there is no folder {path.parent}")
    if from_file:
        described, outcomes = _stored(from_file, selected)
    else:
        described, outcomes = _measured(
            selected, device, with_peers, Budget(repeat, seconds), json_file
        )
    if json_file:
        _write_json(json_file, described, outcomes)
    if markdown_file:
        markdown_file.write_text(report.as_markdown(described, outcomes), encoding="utf-8")
    wrong = [problem for outcome in outcomes for problem in outcome.wrong]
    if wrong:
        raise click.ClickException("\n".join(["wrong results:", *wrong]))


def _write_json(path: Path, described: dict[str, Any], outcomes: Sequence[report.Outcome]) -> None:
    # Renamed, so that an interrupted command leaves a complete file.
    aside = path.with_name(path.name + ".part")
    aside.write_text(stored.as_text(report.as_json(described, outcomes)), encoding="utf-8")
    aside.replace(path)


def _stored(
    path: Path, selected: Sequence[tuple[Suite, Sequence[Case]]]
) -> tuple[dict[str, Any], list[report.Outcome]]:
    """What a file has of the selected cases, printed."""
    names = {(suite.name, case.name) for suite, cases in selected for case in cases}
    try:
        document = json.loads(path.read_bytes())
        found = stored.outcomes_in(document)
        described = dict(document["machine"])
        print(machine.in_one_line(described))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise click.ClickException(f"{path} cannot be read: {error}") from error
    outcomes = [o for o in found if (o.suite.name, o.case.name) in names]
    if not outcomes:
        raise click.ClickException(f"{path} has none of these cases")
    for suite, _ in selected:
        done = [o for o in outcomes if o.suite is suite]
        if done:
            lines = report.Lines(suite, [o.case for o in done])
            print("\n".join(["", lines.heading(), *map(lines.line, done), lines.footing(done)]))
    return described, outcomes


def _measured(
    selected: Sequence[tuple[Suite, Sequence[Case]]],
    device: str,
    with_peers: bool,
    budget: Budget,
    json_file: Path | None,
) -> tuple[dict[str, Any], list[report.Outcome]]:
    """The machine, and the outcomes, each printed, and in the file, as soon as it is there."""
    threads = get_num_threads()
    place = _place(device, threads)
    contenders = place.peers(threads) if with_peers else []
    missing = peers.missing() if with_peers and device == "cpu" else []
    described = machine.describe(contenders, missing)
    if device != "cpu":
        described["GPU"] = place.describe()
    print(machine.in_one_line(described))
    outcomes: list[report.Outcome] = []
    for suite, found in selected:
        lines = report.Lines(suite, found)
        print(f"\n{lines.heading()}")
        done = []
        for outcome in _run(suite, found, contenders, budget, threads, place):
            print(lines.line(outcome), flush=True)
            done.append(outcome)
            outcomes.append(outcome)
            if json_file:
                _write_json(json_file, described, outcomes)
        print(lines.footing(done))
    return described, outcomes


def _print_list(selected: Sequence[tuple[Suite, Sequence[Case]]]) -> None:
    for suite, found in selected:
        print(f"{suite.name}: {suite.summary}")
        width = max(len(case.name) for case in found)
        for case in found:
            print(f"  {case.name:<{width}}  {case.title}")


def _run(
    suite: Suite,
    cases: Sequence[Case],
    contenders: Sequence[peers.Peer],
    budget: Budget,
    threads: int,
    place: Place,
) -> Iterator[report.Outcome]:
    try:
        for i, case in enumerate(cases):
            show_progress(f"{suite.name}, {i + 1} of {len(cases)}: {case.title}")
            outcome = run_case(suite, case, contenders, budget, threads, place)
            show_progress()
            yield outcome
    finally:
        show_progress()
        place.close()


def _place(device: str, threads: int) -> Place:
    if device == "cpu":
        return Cpu(threads)
    if find_spec("torch") is None:
        raise click.ClickException("--device cuda measures with PyTorch, which is not installed")
    from benchmarks.gpu import Gpu

    try:
        Device(device)
    except DeviceError as error:  # it says what is missing
        raise click.ClickException(str(error)) from error
    return Gpu()


def run_case(
    suite: Suite,
    case: Case,
    contenders: Sequence[peers.Peer],
    budget: Budget,
    threads: int,
    place: Place,
) -> report.Outcome:
    """Gate and measure one case."""
    job = case.job()
    gate = Gate(job)
    entered = [ours.dispatch(job) if case.dispatch else place.function(job)]
    if not case.dispatch:
        entered += [c for peer in contenders for c in peer.contestants(job)]
    into = _into(job, contenders, gate) if suite.into else []
    for contestant in (*entered, *into):
        if not contestant.problem:
            contestant.pass_gate(gate)
    del gate
    traffic = job.traffic
    copies = place.copies(traffic) if traffic >= report.SMALLEST_COPY else []
    place.take_turns([*entered, *into, *copies], budget)
    outcome = report.Outcome(suite, case, entered[0], entered[1:], copies, traffic, into)
    mixed: list[Contestant] = []
    if outcome.ratio is not None and isinstance(place, Cpu):
        mixed = [replace(c, samples=[]) for c in (outcome.against, outcome.base) if c]
        take_turns(mixed, budget, alone=False)
    for contestant in (*entered, *into, *copies, *mixed):
        contestant.release()  # outcomes are kept to the end, inputs of gigabytes must not be
    del job
    gc.collect()
    return replace(outcome, mixed=mixed)


def _into(job: Job, contenders: Sequence[peers.Peer], gate: Gate) -> list[Contestant]:
    """Whoever can write into arrays that are there, each with arrays of its own."""
    others = [c for peer in contenders for c in peer.contestants(job, gate.outputs())]
    return [ours.function(job, gate.outputs()), *others]
