"""What the core is told of columns that name their run, and how long such texts are."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from headrace.model import Column
from headrace.planning.made_columns import longest_text
from headrace.planning.run_facts import RunFacts, of_run
from headrace.run.folder import new_run_id

RUN = RunFacts("20260728-101530-ab12cd", "5f3a", 1_700_000_000_123_456)


def test_what_only_a_run_knows() -> None:
    assert of_run({"run_id": None}, RUN) == {"run_id": "20260728-101530-ab12cd"}
    assert of_run({"package_hash": None}, RUN) == {"package_hash": "5f3a"}
    assert of_run({"load_time": None}, RUN) == {"load_time": 1_700_000_000_123_456}
    assert of_run({"load_time": None}, RunFacts("run", "5f3a", None)) == {"load_time": None}


def test_what_needs_no_run() -> None:
    assert of_run("slice", RUN) == of_run("slice", None) == "slice"
    assert of_run({"run_id": None}, None) == {"run_id": None}


def test_texts_of_a_run_have_the_planned_length() -> None:
    def planned(made_from: str) -> int:
        column = Column.model_validate({"name": "made", "type": "string", "from": made_from})
        return len(longest_text(column, []) or "")

    assert planned("run_id") == len(new_run_id(datetime.now(UTC)))
    assert planned("package_hash") == len(hashlib.sha256(b"package").hexdigest())
