"""CSV test suites that no one here wrote: a case gives the rows that its suite expects, or differs by a decision."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance_csv.decisions import DECISIONS
from tests.conformance_csv.layouts import SUITES, Case, Row, cases
from tests.conformance_csv.reading import Outcome, read
from tests.snapshots import assert_file

ROOT = Path(__file__).parents[2]
CASES = cases()
_BEGIN, _END = "<!-- conformance_csv: begin -->\n", "<!-- conformance_csv: end -->\n"


def as_expected(case: Case, outcome: Outcome) -> bool:
    """Whether the rows are those of the suite; where it finds an error, whether we do, and no row that it has not."""
    width = max([len(row) for row in [*case.rows, *outcome.rows]], default=0)
    wanted, found = padded(case.rows, width), padded(outcome.rows, width)
    if case.error is not None:
        return bool(outcome.rejects or outcome.refused) and all(row in wanted for row in found)
    return not outcome.rejects and outcome.refused is None and found == wanted


def padded(rows: list[Row], width: int) -> list[Row]:
    """Rows of one width: `short_rows: fill` fills with empty fields."""
    return [row + [""] * (width - len(row)) for row in rows]


@pytest.mark.parametrize("case", CASES, ids=[case.key for case in CASES])
def test_a_case(case: Case, tmp_path: Path) -> None:
    outcome = read(case, tmp_path)
    if case.key in DECISIONS:
        assert not as_expected(case, outcome), "as expected by now: leave it out of the decisions"
        assert outcome == DECISIONS[case.key].outcome
    else:
        assert as_expected(case, outcome), (case.layout(), case.text, outcome, case.rows)


def test_decisions_are_about_cases() -> None:
    assert set(DECISIONS) <= {case.key for case in CASES}
    assert len({case.key for case in CASES}) == len(CASES)


def test_every_suite_says_where_it_is_from() -> None:
    for suite in SUITES:
        document = json.loads((Path(__file__).parent / "suites" / f"{suite}.json").read_text(encoding="utf-8"))
        assert all(document[key] for key in ("package", "version", "licence", "sha256"))
        assert (Path(__file__).parent / "licences" / f"{suite}.txt").exists()


def test_the_table_in_testing_md_is_true() -> None:
    path = ROOT / "TESTING.md"
    text = path.read_text(encoding="utf-8")
    lines = ["| case | result |\n", "| --- | --- |\n"]
    for case in CASES:
        decision = DECISIONS.get(case.key)
        name = case.key.replace("|", "\\|")
        lines.append(f"| {name} | {'passed' if decision is None else f'deviation: {decision.reason}'} |\n")
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    assert begin and end
    assert_file(path, before + begin + "".join(lines) + end + after)
