"""Ways of data flows with several destinations: how they are called, and added up in long loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace.run.control.names import InstanceNames
from headrace.run.folded import SHOWN_FLOWS, FoldedFlows
from headrace.run.redact import Redactor
from headrace.run.summary import sources_of
from headrace.run.tasks import earlier_names, known_names, nameable_flows
from tests.unit.model.packages import load
from tests.unit.model.test_several_destinations import package

LOOP = """  each:
    foreach:
      item: part
      in: ["${env:FIRST}", "${env:SECOND}"]
      tasks:
"""


def test_secrets_in_names_of_flows_are_numbered_once_for_all_ways(tmp_path: Path) -> None:
    head, _, flow = package(a="lines", b="lines").partition("tasks:\n")
    inner = "".join(f"      {line}\n" for line in flow.splitlines())
    text = f"{head}tasks:\n{LOOP}{inner}"
    bound = load(tmp_path, text, environ={"FIRST": "hidden-one", "SECOND": "hidden-two"})
    bound.secrets.update({"hidden-one", "hidden-two"})
    named = [(flow.flow, flow.id) for flow, _ in nameable_flows(bound)]
    assert named == [
        ("each[***].load", "each[***].load/a"),
        ("each[***].load", "each[***].load/b"),
        ("each[***].load#2", "each[***].load#2/a"),
        ("each[***].load#2", "each[***].load#2/b"),
    ]


def test_the_control_asks_for_flows_by_the_names_that_the_ledger_has(tmp_path: Path) -> None:
    head, _, flow = package(a="lines", b="lines").partition("tasks:\n")
    inner = "".join(f"      {line}\n" for line in flow.splitlines())
    bound = load(tmp_path, f"{head}tasks:\n{LOOP}{inner}", environ={"FIRST": "hidden-one", "SECOND": "hidden-two"})
    bound.secrets.update({"hidden-one", "hidden-two"})
    names = InstanceNames(Redactor(bound.secrets), known_names(bound))
    # A resumed run does not enter turns that have ended.
    assert names.shown("each[hidden-two].load") == "each[***].load#2"
    assert names.shown("each[hidden-one].load") == "each[***].load"


def table(turn: int, name: str, **others: Any) -> dict[str, Any]:
    """A destination of a flow in a turn of a loop: of two rows one has gone here, and one nowhere."""
    counts = {
        "rows_read": 2, "rows_loaded": 1, "rows_rejected": 0, "rows_filtered": 1, "lines": 2, "rows_skipped": 0,
        "slices": 1, "bytes_read": 9, "seconds": 0.1, "cpu_seconds": 0.1, "switch_seconds": 0.0, "values_ignored": 0,
    }  # fmt: skip
    flow = f"each[{turn}].load"
    shared = {"rows_rejected": 0, "rows_filtered": 1} if name == "a" else None
    return {
        "task": f"{flow}/{name}", "table": name, "flow_of": flow, "shared": shared, "status": "success",
        "transforms": [], "mb_per_second": 0.0, "rows_per_second": 0.0, **counts, **others,
    }  # fmt: skip


def test_turns_of_a_loop_that_are_added_up_are_read_once_for_all_ways() -> None:
    folded = FoldedFlows()
    shown = [own for turn in range(SHOWN_FLOWS + 3) for name in "ab" if not folded.takes(own := table(turn, name))]
    told = sources_of([*shown, *folded.documents])
    assert sum(own["rows_read"] for own in told) == 2 * (SHOWN_FLOWS + 3)
    (first, second) = folded.documents
    assert (first["shared"], second["shared"]) == ({"rows_rejected": 0, "rows_filtered": 3}, None)
    assert first["flow_of"] == second["flow_of"] == "each[...].load"


def test_a_finished_flow_may_be_the_first_that_is_added_up() -> None:
    """What an earlier version has finished does not say what its ways share."""
    folded = FoldedFlows()
    turns = range(SHOWN_FLOWS + 2)
    for turn in turns:
        shared = None if turn == SHOWN_FLOWS else {"rows_rejected": 0, "rows_filtered": 1}
        for name in "ab":
            own = table(turn, name, shared=shared if name == "a" else None)
            assert folded.takes(own) is (turn >= SHOWN_FLOWS)
    (first, second) = folded.documents
    assert (first["shared"], first["flows"], second["shared"]) == ({"rows_rejected": 0, "rows_filtered": 1}, 2, None)


def test_a_flow_is_added_up_as_a_whole_or_not_at_all() -> None:
    """Its rejects are those of one way, and are told with the first."""
    folded = FoldedFlows()
    shown = []
    for turn in range(SHOWN_FLOWS + 4):
        is_bad = turn == SHOWN_FLOWS + 2
        rejected = {"rows_rejected": 1, "rows_filtered": 0}
        ways = [
            table(turn, "a", **({"shared": rejected} if is_bad else {})),
            table(turn, "b", **({"rows_rejected": 1, "rows_loaded": 0} if is_bad else {})),
        ]
        shown += [own for own in ways if not folded.takes(own)]
    assert [own["task"] for own in shown[-2:]] == [f"each[{SHOWN_FLOWS + 2}].load/{name}" for name in "ab"]
    told = sources_of([*shown, *folded.documents])
    assert sum(own["rows_read"] for own in told) == 2 * (SHOWN_FLOWS + 4)
    assert [own["flows"] for own in folded.documents] == [3, 3]


def test_a_destination_of_a_flow_that_is_done_anew_has_an_earlier_name() -> None:
    """Under which its rows may have been appended."""
    assert earlier_names("load#2/one") == ["load/one"]
    assert earlier_names("each[1]#2.load/one") == ["each[1].load/one"]
