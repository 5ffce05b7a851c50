"""Writes the page with what became of the mutations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.mutations.areas import AREAS
from tests.mutations.mutation_set import Mutation, load
from tests.mutations.run import read_results
from tests.mutations.tree import ROOT

RESULTS = {name: Path(__file__).parent / f"results-{name}.jsonl" for name in ("old", "new")}
PAGE = ROOT / "docs" / "contributing" / "mutations.md"
_HEAD = """# Mutations

Written by `python -m tests.mutations table`; [TESTING.md](../../TESTING.md) says how to repeat it. Each mutation is one
small mistake in the code, drawn by seed and stored in `tests/mutations/set.json`. A test suite catches it if at least
one test fails with it. `old` is the suite before tests were removed, `new` is the suite now.
"""


def write_table() -> None:
    """Writes `docs/contributing/mutations.md` from the results that there are."""
    mutations = load()
    results = {name: {item["number"]: item for item in read_results(path)} for name, path in RESULTS.items()}
    known = {name: own for name, own in results.items() if own}
    lines = [_HEAD, f"| area | mutations | {' | '.join(f'caught by {name}' for name in known)} |"]
    lines.append("| --- |" + " ---: |" * (1 + len(known)))
    for area in AREAS:
        lines.append(_row(area, [mutation for mutation in mutations if mutation.area == area], known))
    lines.append(_row("**all**", mutations, known))
    for name, own in known.items():
        rows = [_survivor(mutation, own[mutation.number]) for mutation in mutations if _survived(own, mutation)]
        lines += ["", f"## Not caught by the {name} suite", ""]
        lines += [
            "| number | area | place | code | with the mutation | tests |",
            "| ---: | --- | --- | --- | --- | --- |",
        ]
        lines += rows
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _row(area: str, mutations: Sequence[Mutation], results: dict[str, dict[int, Any]]) -> str:
    cells = []
    for own in results.values():
        judged = [own[mutation.number]["verdict"] for mutation in mutations if mutation.number in own]
        some = "" if len(judged) == len(mutations) else f" of {len(judged)} that were run"
        cells.append(f"{judged.count('killed')}{some}")
    return f"| {area} | {len(mutations)} | {' | '.join(cells)} |"


def _survived(results: dict[int, Any], mutation: Mutation) -> bool:
    return mutation.number in results and results[mutation.number]["verdict"] != "killed"


def _survivor(mutation: Mutation, result: dict[str, Any]) -> str:
    tests = result["verdict"] if not result["tests"] else f"{result['tests']} passed"
    if result["left_out"]:
        tests += f", {result['left_out']} not run"
    code, mutated = (_cell(text) for text in (mutation.original, mutation.mutated or "(left out)"))
    return f"| {mutation.number} | {mutation.area} | {mutation.file}:{mutation.line} | {code} | {mutated} | {tests} |"


def _cell(text: str) -> str:
    short = " ".join(text.split())
    short = short if len(short) <= 80 else short[:77] + "..."
    return "`" + short.replace("|", "\\|") + "`"
