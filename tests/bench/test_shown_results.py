"""The tables that are shown are those of the committed results."""

import json

import pytest

from benchmarks import show as shown
from benchmarks.report import geometric_mean

RESULTS = shown.document()


@pytest.mark.parametrize(
    "path", [shown.README, shown.PAGE, shown.GPU_PAGE], ids=lambda path: path.name
)
def test_a_page_shows_the_results(path):
    assert path.read_text() == shown.pages(RESULTS)[path], "run python -m benchmarks.show"


GPU_RESULTS = json.loads(shown.GPU_RESULTS.read_bytes())


def test_the_readmes_table_has_at_most_ten_rows():
    rows = shown.representative(shown.measured(RESULTS))
    assert len(rows) == len(shown.REPRESENTATIVE) <= 10
    slower = [row for row in shown.measured(RESULTS) if row.ratio < 1]
    assert not slower or any(row.ratio < 1 for row in rows), "what is slower belongs to it"
    text = shown.README.read_text()
    table = text[text.index("<!-- bench:begin -->") : text.index("<!-- bench:end -->")]
    assert sum(line.startswith("|") for line in table.splitlines()) == 2 + len(rows) + 1
    assert text.index("What it cannot do") < text.index("<!-- bench:begin -->")


def test_what_is_said_in_words_is_what_was_measured():
    """What the README and the guide to speed say in words about who is faster."""
    outcomes = shown.measured(RESULTS)
    slower = {outcome.case.name.partition("/")[0] for outcome in outcomes if outcome.ratio < 1}
    assert slower == {"gather_elements"}
    assert round(geometric_mean(outcomes)) == 3
    assert "three times as fast" in shown.README.read_text()
    on_gpu = shown.measured(GPU_RESULTS)
    mean = f"{len(on_gpu)} calls are {geometric_mean(on_gpu):.1f} times as fast"
    assert mean in shown.README.read_text()
    losses: dict[str, float] = {}  # by how much of the peer's time, at most
    for outcome in on_gpu:
        family = outcome.case.name.partition("/")[0].removesuffix("_nd")
        if outcome.ratio < 1:
            losses[family] = max(losses.get(family, 0), 1 / outcome.ratio - 1)
    assert losses.keys() == {"gather", "nonzero", "scatter"}
    said = (
        f"A move of 600 K updates into 10 M elements takes {1 + losses['scatter']:.1f} times "
        f"PyTorch's time, some gathers up to {losses['gather']:.0%} more, "
        f"nonzero of 4096² up to {losses['nonzero']:.0%} more on a slow host"
    ).replace("%", " %")
    assert said in shown.README.read_text()
    into = [outcome.ratio_into for outcome in outcomes if outcome.ratio_into is not None]
    count = f"faster in {sum(ratio < 1 for ratio in into)} of {len(into)} |"
    assert count in (shown.PAGE.parent / "guides" / "speed.md").read_text()


def test_a_mean_of_what_does_not_end_early():
    outcomes = shown.measured(RESULTS)
    early = [o.case.name for o in outcomes if o.ends_early]
    assert early == ["top_k/int8-16M-k100"]
    page = shown.PAGE.read_text()
    (row,) = (line for line in page.splitlines() if line.startswith("| top_k int8 16 M"))
    assert "| ends early |" in row
    assert "**Of copy bandwidth** is" in page


def test_it_writes_them_all(tmp_path, monkeypatch):
    for name in ("README", "PAGE", "GPU_PAGE"):
        copy = tmp_path / getattr(shown, name).name
        copy.write_bytes(getattr(shown, name).read_bytes())
        monkeypatch.setattr(shown, name, copy)
    before = shown.README.read_text()
    block = before.index("<!-- bench:begin -->"), before.index("<!-- bench:end -->")
    shown.README.write_text(f"{before[: block[0]]}<!-- bench:begin -->\nx{before[block[1] :]}")
    shown.main()
    assert shown.README.read_text() == before
