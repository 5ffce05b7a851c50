"""What the checks cost: writes docs/contributing/test-times.md.

    python -m tests.times record NAME   keep what the last run of `.ci/run` in this folder has measured, under this name
    python -m tests.times write         the page, from all that was kept

What is read: `target/times.tsv` (steps, test programs of cargo), `target/pytest*.xml` (modules) and the last report of
`cargo --timings` (crates). What is kept is one JSON file for each run in docs/contributing/times.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "contributing" / "times"
PAGE = ROOT / "docs" / "contributing" / "test-times.md"
# Modules and crates that are shown; the others are one line.
SHOWN = 25

# What one run has measured: for each kind, seconds on the clock and of CPU by name.
Measured = dict[str, dict[str, list[float]]]


def steps(text: str) -> Measured:
    """Lines of `times.tsv`; a name that comes again is added up."""
    found: Measured = {}
    for line in text.splitlines():
        kind, name, wall, cpu = line.split("\t")
        before = found.setdefault(kind, {}).get(name, [0.0, 0.0])
        found[kind][name] = [round(before[0] + float(wall), 1), round(before[1] + float(cpu), 1)]
    return found


def modules(documents: list[str]) -> dict[str, list[float]]:
    """Seconds of the tests of each module, with their fixtures, and how many tests there are."""
    seconds: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for document in documents:
        for case in ElementTree.fromstring(document).iter("testcase"):
            name = re.sub(r"\.Test\w+$", "", case.get("classname", ""))
            seconds[name] += float(case.get("time", "0"))  # type: ignore[assignment]
            tests[name] += 1
    return {name: [round(seconds[name], 1), tests[name]] for name in seconds}


def crates(report: str) -> dict[str, list[float]]:
    """Seconds that the compiler took for each crate, from a report of `cargo --timings`; libraries and tests apart."""
    found = re.search(r"^const UNIT_DATA = (\[.*?\n?\]);$", report, re.MULTILINE | re.DOTALL)
    units: list[dict[str, Any]] = json.loads(found[1]) if found else []
    result: Counter[str] = Counter()
    for unit in units:
        result[unit["name"] + unit["target"].rstrip()] += unit["duration"]
    return {name: [round(seconds, 1)] for name, seconds in result.items()}


def measured() -> Measured:
    """What the last run in this folder has measured."""
    target = ROOT / "target"
    found = steps((target / "times.tsv").read_text())
    found["module"] = modules([path.read_text() for path in sorted(target.glob("pytest*.xml"))])
    reports = sorted((target / "cargo-timings").glob("cargo-timing-*.html"))
    found["crate"] = crates(reports[-1].read_text()) if reports else {}
    return found


def _table(kind: str, title: str, columns: tuple[str, ...], runs: dict[str, Measured]) -> list[str]:
    names = {name for run in runs.values() for name in run.get(kind, {})}
    latest = list(runs.values())[-1].get(kind, {}) if runs else {}
    ordered = sorted(
        names, key=lambda name: (-max(run.get(kind, {}).get(name, [0.0])[0] for run in runs.values()), name)
    )
    if kind in ("stage", "step"):
        ordered = [*latest, *(name for name in ordered if name not in latest)]
    shown, rest = (ordered, []) if kind in ("stage", "step", "program") else (ordered[:SHOWN], ordered[SHOWN:])
    heads = [f"{run}: {column}" for run in runs for column in columns]
    lines = [f"## {title}", "", f"| {kind} | {' | '.join(heads)} |", f"| --- {'| ---: ' * len(heads)}|"]

    def cells(these: list[str]) -> str:
        found = []
        for run in runs.values():
            values = [run.get(kind, {})[name] for name in these if name in run.get(kind, {})]
            sums = [sum(value[index] for value in values) for index in range(len(columns))]
            found += [f"{total:,.0f}" if values else "" for total in sums]
        return " | ".join(found)

    lines += [f"| {name} | {cells([name])} |" for name in shown]
    if rest:
        lines.append(f"| {len(rest)} others | {cells(rest)} |")
    return [*lines, f"| all | {cells(ordered)} |" if kind not in ("stage", "step") else "", ""]


def page(runs: dict[str, Measured]) -> str:
    """The page as Markdown."""
    lines = [
        "# What the checks cost",
        "",
        "Written by `python -m tests.times write` from what runs of `.ci/run` have measured. Seconds; `wall` on the",
        "clock, `CPU` of all processes of a step.",
        "The machine has two cores. Steps of `make test` are parts of its stage.",
        "",
    ]
    both = ("wall", "CPU")
    lines += _table("stage", "Stages of `.ci/run`", both, runs)
    lines += _table("step", "Steps of `make test` and `make test-faults`", both, runs)
    lines += _table("program", "Test programs of cargo", both, runs)
    lines += _table("module", "Modules of pytest, with their fixtures (four at a time)", ("wall", "tests"), runs)
    lines += _table("crate", "Compiling, profile `ci` (two at a time)", ("wall",), runs)
    return "\n".join(lines).replace("\n\n\n", "\n\n").rstrip() + "\n"


def main(arguments: list[str]) -> None:
    """The command line; see the top of this file."""
    match arguments:
        case ["record", name]:
            KEPT.mkdir(parents=True, exist_ok=True)
            head = ["git", "log", "-1", "--format=%h %cs"]
            commit = subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
            (KEPT / f"{name}.json").write_text(json.dumps({"commit": commit, **measured()}, indent=1) + "\n")
        case ["write"]:
            runs = {path.stem: json.loads(path.read_text()) for path in sorted(KEPT.glob("*.json"))}
            PAGE.write_text(page(runs))
        case _:
            sys.exit(str(__doc__))


if __name__ == "__main__":
    main(sys.argv[1:])
