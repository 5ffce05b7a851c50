"""Packages and command lines that cannot be run: exit codes, place of the problem, nothing touched."""

from __future__ import annotations

import pytest

from headrace import core
from tests.integration.driver import PACKAGE, Before, Project
from tests.snapshots import assert_snapshot

MALFORMED = {
    "unknown_key": ("delimiter:", "delimeter:"),
    "not_yaml": ("connections:", "connections: ["),
    "duplicate_key": ("streams: 4", "streams: 4\nstreams: 8"),
    "unknown_type": ("type: int64", "type: bigint"),
    "unknown_connection": ("connection: warehouse", "connection: warehose"),
    "unknown_layout": ("layout: orders", "layout: order"),
    "wrong_target": ('target: "${target}"', "target: overwrite"),
    "unknown_parameter": ('"${limit}"', '"${limits}"'),
    "unset_environment": ("path: inbox", 'path: "${env:HEADRACE_NO_SUCH_VARIABLE}"'),
    "other_version": ("headrace: 1", "headrace: 2"),
    "several_problems": ("type: date", "type: datum, nulable: false"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_package(project: Project, case: str) -> None:
    before = Before.of(project)
    project.file("orders.tbl.1")
    old, new = MALFORMED[case]
    assert old in PACKAGE
    project.package(PACKAGE.replace(old, new))
    ended = project.run()
    assert ended.exit_code == 5
    assert ended.summary["error"]["kind"] == "package"
    assert_snapshot(f"package_{case}", project.stable(ended.error))
    before.check()
    assert not project.runs.exists()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"- a\n- list\n"], ids=["empty", "bytes", "list"])
def test_no_package(project: Project, content: bytes, request: pytest.FixtureRequest) -> None:
    (project.folder / "package.yaml").write_bytes(content)
    ended = project.run()
    assert ended.exit_code == 5
    assert_snapshot(f"package_{request.node.callspec.id}", project.stable(ended.error))


def test_a_package_that_is_not_there(project: Project) -> None:
    (project.folder / "package.yaml").rename(project.folder / "packages.yaml")
    ended = project.run()
    assert ended.exit_code == 4
    assert_snapshot("package_not_found", project.stable(ended.error))


@pytest.mark.parametrize(
    ("case", "arguments", "exit_code"),
    [
        ("unknown_set", ["--set", "tabel=orders"], 6),
        ("wrong_set", ["--set", "limit=many"], 6),
        ("unknown_override", ["--connection", "warehous=null:"], 6),
        ("unknown_scheme", ["--connection", "warehouse=sqlite:w.db"], 6),
    ],
)
def test_a_wrong_command_line(project: Project, case: str, arguments: list[str], exit_code: int) -> None:
    before = Before.of(project)
    project.file("orders.tbl.1")
    ended = project.run(*arguments)
    assert ended.exit_code == exit_code
    assert_snapshot(f"command_{case}", project.stable(ended.error))
    before.check()


def test_instructions_that_the_processor_lacks(project: Project) -> None:
    before = Before.of(project)
    project.file("orders.tbl.1")
    ended = project.run(environment={"HEADRACE_CPU": "mmx"})
    assert ended.exit_code == 1
    names = ", ".join(core.cpu_paths())
    assert_snapshot("unknown_instructions", project.stable(ended.error).replace(names, "NAMES OF THIS MACHINE"))
    before.check()
