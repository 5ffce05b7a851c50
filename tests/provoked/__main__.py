"""Makes limits happen, many times at random sizes and shapes, and compares the verdicts: `python -m tests.provoked`.

Prints the confusion matrix, and writes every case as a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.integration.driver import Project
from tests.provoked.cases import CASES, Case, Place, limit_of
from tests.servers.farm import Farm


def main() -> None:
    """Runs the cases in turn, so many in all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=len(CASES), help=f"how many ({len(CASES)})")
    parser.add_argument("--only", help="names of cases, with commas between")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("provoked.jsonl"))
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(CASES)
    missing = {name: why for name in names if (why := CASES[name].missing()) is not None}
    for name, why in missing.items():
        print(f"NOT CHECKED: {name}: {why}")
    chosen = [CASES[name] for name in names if name not in missing]
    farm = Farm()
    seen: Counter[tuple[str, str]] = Counter()
    try:
        with tempfile.TemporaryDirectory() as folder, options.output.open("a") as output:
            files = _files(Path(folder))
            for number in range(options.cases):
                own = chosen[number % len(chosen)]
                line = _one(own, Path(folder), files, farm, options.seed * 1_000_000 + number)
                seen["/".join(sorted(own.expected)), str(line["found"])] += 1
                output.write(json.dumps(line) + "\n")
                output.flush()
                print(f"{own.name:34} {line['found']!s:18} {'ok' if line['is_right'] else 'WRONG'}  {line['sentence']}")
    finally:
        farm.close()
    print_matrix(seen)


def _files(folder: Path) -> Path:
    place = folder / "files"
    place.mkdir()
    project = Project(place)
    command = ["-m", "headrace", "generate", "tpch", "--scale", "0.05", "--chunks", "8", "--out", str(project.inbox)]
    ended = project.command([sys.executable, *command])
    assert ended.exit_code == 0, ended.stderr
    return project.inbox


def _one(own: Case, folder: Path, files: Path, farm: Farm, seed: int) -> dict[str, object]:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=folder) as place:
        try:
            limit = limit_of(own.run(Place(Path(place), files, farm, random.Random(seed))))
            found, sentence = (str(limit["limit"]), str(limit["sentence"])) if limit else ("unknown", "")
        except Exception:
            found, sentence = "failed", traceback.format_exc()
    return {
        "case": own.name,
        "seed": seed,
        "expected": sorted(own.expected),
        "found": found,
        "is_right": found in own.expected,
        "seconds": round(time.monotonic() - started, 1),
        "sentence": sentence,
    }


def print_matrix(seen: Counter[tuple[str, str]]) -> None:
    """What was made to happen against what the verdict said."""
    found = sorted({name for _, name in seen})
    print("| made to happen | " + " | ".join(found) + " | right |")
    print("| --- |" + " ---: |" * (len(found) + 1))
    right = 0
    for expected in sorted({name for name, _ in seen}):
        counts = [seen[expected, name] for name in found]
        hits = sum(seen[expected, name] for name in expected.split("/"))
        right += hits
        cells = " | ".join(str(count) if count else "" for count in counts)
        print(f"| {expected} | {cells} | {hits / sum(counts):.0%} |")
    total = sum(seen.values())
    print(f"\n{right} of {total} right: {right / max(total, 1):.1%}")


if __name__ == "__main__":
    main()
