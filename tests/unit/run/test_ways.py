"""Names of data flows with several destinations: each way is called by its flow and its destination."""

from __future__ import annotations

from pathlib import Path

from headrace.run.tasks import nameable_flows
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
