"""The answers as tables, in plain text or Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from anydml.judge.judging import Answer

LEGEND: Final = (
    "yes: kept in all cases; (yes): kept, though the library's documentation does not promise it; "
    "{no}: broken, though it does; –: no such function, choice of threads, gradient or CUDA graph"
)


def cell(answer: Answer, is_markdown: bool) -> str:
    """The answer as a word of a table."""
    if answer.verdict == "none":
        return "–"
    if answer.verdict == "yes":
        return "yes" if answer.page else "(yes)"
    return _marked(answer.verdict, is_markdown) if answer.page else answer.verdict


def _marked(verdict: str, is_markdown: bool) -> str:
    return f"**{verdict}**" if is_markdown else f"{verdict}!"


def report(
    answers: Sequence[Answer], versions: Mapping[str, str], is_markdown: bool
) -> Iterator[str]:
    """The lines of a table for each function, with the cases that break promises below it.

    A broken promise that the library's own documentation makes is marked.
    """
    yield f"{LEGEND.format(no=_marked('no', is_markdown))}."
    libraries = [*dict.fromkeys(answer.library for answer in answers)]
    by_place = {(a.library, a.promise.function, a.promise.name): a for a in answers}
    title = [f"{name} {versions.get(name, '')}".strip() for name in libraries]
    for function in dict.fromkeys(answer.promise.function for answer in answers):
        answered = [a for a in answers if a.promise.function == function and a.verdict != "none"]
        promises = [*dict.fromkeys(a.promise for a in answered)]
        rows = [
            [p.text, *(cell(by_place[name, function, p.name], is_markdown) for name in libraries)]
            for p in promises
        ]
        yield ""
        yield from _table([function, *title], rows, is_markdown)
        broken = [a for a in answers if a.promise.function == function and a.example]
        if broken:
            yield ""
        for answer in broken:
            mark = f", though {answer.page} promises it" if answer.page else ""
            start = "- " if is_markdown else "  "
            text = answer.example.replace("|", "\\|") if is_markdown else answer.example
            yield f"{start}{answer.library}, {answer.promise.name}{mark}: {text}"


def _table(
    heading: Sequence[str], rows: Sequence[Sequence[str]], is_markdown: bool
) -> Iterator[str]:
    if is_markdown:
        for row in (heading, ["---"] * len(heading), *rows):
            yield f"| {' | '.join(row)} |"
        return
    widths = [max(map(len, column)) for column in zip(heading, *rows, strict=True)]
    for row in (heading, *rows):
        cells = zip(row, widths, strict=True)
        yield "  ".join(cell.ljust(width) for cell, width in cells).rstrip()
