"""Mutation testing: changes the code by rule and looks whether a test fails.

    python scripts/mutate.py --list                    how many mutants, by file and rule
    python scripts/mutate.py --seed 1 --count 100      a sample; those that survive are shown
    python scripts/mutate.py --seed 1 --count 100      the same again: goes on where it ended
    python scripts/mutate.py --gpu --count 10          of the GPU's code, on a machine that has one
    python scripts/mutate.py --show KEY                one mutant; --key KEY runs it

Works in a copy of the tree, in `build/mutation`. A mutant is killed by the first test that fails or
takes too long; what does not compile, or compiles to the same machine code, is replaced by the next
of the sample. Outcomes are kept in
`outcomes.jsonl` there, by mutant and contents of its file. Code that is marked `Speed only` is left
out (`mutation/mutants.py`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from mutation.mutants import Mutant, all_mutants, in_random_order

ROOT = Path(__file__).resolve().parents[1]


class Outcomes:
    """What earlier runs found, a line for each mutant."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[tuple[str, str], dict[str, str]] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            entry = json.loads(line)
            self.known[entry["key"], entry["source"]] = entry

    def of(self, mutant: Mutant) -> dict[str, str] | None:
        """What is known of a mutant whose file is still the same."""
        return self.known.get((mutant.key, mutant.source_hash))

    def add(self, mutant: Mutant, result: str, by: str, seconds: float) -> dict[str, str]:
        """Keep an outcome."""
        entry = {
            "key": mutant.key, "source": mutant.source_hash, "file": mutant.file,
            "line": str(mutant.line), "rule": mutant.edit.rule, "result": result, "by": by,
            "seconds": str(seconds),
        }  # fmt: skip
        self.known[mutant.key, mutant.source_hash] = entry
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(entry) + "\n")
        return entry


def show_list(mutants: list[Mutant]) -> None:
    """Print how many there are."""
    for title, counts in (
        ("file", Counter(mutant.file for mutant in mutants)),
        ("rule", Counter(mutant.edit.rule for mutant in mutants)),
    ):
        print(f"{'mutants':>8}  {title}")
        for name, count in sorted(counts.items()):
            print(f"{count:8}  {name}")
    print(f"{len(mutants):8}  in all")


def diff(mutant: Mutant) -> str:
    """The mutant as it is shown."""
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    return f"{mutant.key}: {mutant.edit.rule}\n{mutant.diff(text)}\n"


def run(mutants: list[Mutant], count: int, options: argparse.Namespace) -> int:
    """Take mutants until this many have an outcome; the number of survivors."""
    from mutation.runner import Tree

    options.folder.mkdir(parents=True, exist_ok=True)
    outcomes = Outcomes(options.folder / "outcomes.jsonl")
    tree = Tree(ROOT, options.folder.resolve(), options.level, options.timeout)
    for known in outcomes.known.values():
        if known["result"] == "killed":
            tree.learn(known["file"], known["by"])
    prepared, survivors, viable = False, list[Mutant](), 0
    for mutant in mutants:
        if viable == count:
            break
        entry = outcomes.of(mutant)
        if entry is None or (options.again and entry["result"] == "survived"):
            if not prepared:
                tree.prepare()
                prepared = True
            outcome = tree.run(mutant)
            entry = outcomes.add(mutant, outcome.result, outcome.by, outcome.seconds)
        viable += entry["result"] != "not viable"
        place = f"{mutant.file}:{mutant.line}"
        print(
            f"{viable:4} {mutant.key} {entry['result']:10} {entry['seconds']:>6} s  "
            f"{place} {mutant.edit.rule}  {entry['by']}",
            flush=True,
        )
        if entry["result"] == "survived":
            survivors.append(mutant)
    print(f"\n{viable} mutants, {len(survivors)} survived")
    for mutant in survivors:
        print(f"\n{diff(mutant)}")
    return len(survivors)


def main() -> int:
    """The command line."""
    from_processor = "v3"
    try:
        from anydml._processor import levels

        from_processor = levels()[0]
    except ImportError:
        pass
    parser = argparse.ArgumentParser(description="Mutation testing of anydml.")
    parser.add_argument("--list", action="store_true", help="count the mutants, run none")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument(
        "--gpu", action="store_true", help="only what tests on a GPU judge, which is needed then"
    )
    parser.add_argument("--files", default="", help="only files whose path contains this")
    parser.add_argument("--key", action="append", default=[], help="only these mutants")
    parser.add_argument("--show", action="append", default=[], help="print mutants, run none")
    parser.add_argument("--again", action="store_true", help="run earlier survivors again")
    parser.add_argument("--level", default=from_processor)
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one test run")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutation")
    options = parser.parse_args()
    mutants = [mutant for mutant in all_mutants(ROOT, options.gpu) if options.files in mutant.file]
    if options.show or options.key:
        chosen = {*options.show, *options.key}
        mutants = [mutant for mutant in mutants if mutant.key in chosen]
    if options.show:
        print("\n".join(map(diff, mutants)))
        return 0
    if options.list:
        show_list(mutants)
        return 0
    return 1 if run(in_random_order(mutants, options.seed), options.count, options) else 0


if __name__ == "__main__":
    sys.exit(main())
