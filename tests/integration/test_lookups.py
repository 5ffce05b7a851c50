"""Lookups of files: the rows that DuckDB's own join gives, in any number of streams, with accounts and messages."""

from __future__ import annotations

import gzip
import json
import re
import signal
import sys
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from headrace import core
from headrace.model import load_package
from headrace.run.event_lines import EVENT_LINES
from headrace.run.runner import execute
from tests.integration.driver import Project
from tests.integration.lookup_scenes import (
    COLORS,
    JOIN,
    LINES,
    MATCHED,
    PACKAGE,
    PARTS,
    part,
    parts,
    strict,
    transforms,
    write_files,
)
from tests.snapshots import assert_snapshot


@pytest.fixture
def facts(project: Project) -> Project:
    project.package(PACKAGE)
    write_files(project)
    return project


def differences(project: Project) -> tuple[int, int, int]:
    """Rows only in the table, rows only in DuckDB's join, rows of the table."""
    join = JOIN.format(inbox=project.inbox)
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{project.database}' AS w (READ_ONLY)")
        connection.execute(f"CREATE TEMP TABLE joined AS {join}")
        row = connection.execute(
            "SELECT (SELECT count(*) FROM (FROM w.facts EXCEPT ALL FROM joined)), "
            "(SELECT count(*) FROM (FROM joined EXCEPT ALL FROM w.facts)), (SELECT count(*) FROM w.facts)"
        ).fetchone()
    assert row is not None
    return row


@pytest.mark.parametrize("streams", [1, 16])
def test_the_table_equals_the_join_of_duckdb(facts: Project, streams: int) -> None:
    ended = facts.run("--streams", str(streams))
    assert differences(facts) == (0, 0, LINES)
    without_key = len(range(0, LINES, 31))
    unknown = sum(number % 31 != 0 and number * 7 % (PARTS * 6 // 5) >= PARTS for number in range(LINES))
    colorless = sum(number % 5 in (3, 4) for number in range(LINES))
    assert transforms(ended) == [
        {
            "name": "keyed",
            "rows": LINES,
            "matched": LINES - without_key - unknown,
            "defaulted": without_key + unknown,
            "rejected": 0,
            "null_keys": without_key,
        },
        {
            "name": "colored",
            "rows": LINES,
            "matched": LINES - colorless,
            "defaulted": colorless,
            "rejected": 0,
            "null_keys": LINES // 5,
        },
    ]
    (table,) = ended.summary["tables"]
    keyed = table["transforms"][0]["lookup"]
    assert (keyed["rows"], keyed["null_keys"], keyed["form"]) == (PARTS, 1, "direct")
    assert keyed["bytes"] <= keyed["peak_bytes"] <= table["memory"]["lookup_bytes"]
    assert ended.summary["phases"]["lookup"] > 0
    read = [event for event in facts.events() if event["event"] == "lookup_read"]
    assert [(event["lookup"], event["rows"]) for event in read] == [("keyed", PARTS), ("colored", 3)]
    notices = [event["text"] for event in facts.events() if event["event"] == "notice"]
    assert "lookup `keyed`: 1 row without a key was left out" in notices
    for event in facts.events():
        if event["event"].startswith("lookup_"):
            assert set(event) - {"event", "at"} == set(EVENT_LINES[event["event"]].members)


def test_rejects_of_the_source_pass_no_transform(facts: Project) -> None:
    path = facts.inbox / "lines.1"
    path.write_text("x|1|red|1.00\n" + path.read_text() + "7|y|red|1.00\n")
    ended = facts.run()
    assert ended.succeeded()["rows_rejected"] == 2
    assert [transform["rows"] for transform in transforms(ended)] == [LINES, LINES]
    assert facts.query("SELECT count(*) FROM facts") == [(LINES,)]


def test_the_null_destination_aggregates_added_columns(facts: Project) -> None:
    (table,) = facts.run("--connection", "warehouse=null:").succeeded()["tables"]
    columns = {column["name"]: column for column in table["columns"]}
    assert list(columns) == ["line", "part", "color", "amount", "file", "part_sk", "part_name", "label"]
    facts.run().succeeded()
    assert [(columns["part_sk"]["sum"], columns["label"]["nulls"])] == facts.query(
        "SELECT sum(part_sk)::VARCHAR, count(*) FILTER (label IS NULL) FROM facts"
    )
    assert (columns["part_sk"]["min"], columns["part_name"]["nulls"]) == (
        "-1",
        facts.query("SELECT count(*) FILTER (part_name IS NULL) FROM facts")[0][0],
    )


def test_packed_files_of_lookups(facts: Project) -> None:
    for name in ("parts.1", "parts.2"):
        path = facts.inbox / name
        (facts.inbox / f"packed.{name[-1]}.gz").write_bytes(gzip.compress(path.read_bytes()))
    facts.run("--set", "parts=packed.*").succeeded()
    assert differences(facts) == (0, 0, LINES)


def test_existing_tables_append_and_partitions(facts: Project) -> None:
    facts.package(PACKAGE.replace("target: replace", "target: append"))
    facts.execute(
        "CREATE TABLE facts (line BIGINT, part INTEGER, color VARCHAR, amount DECIMAL(9,2), file VARCHAR,"
        " part_sk BIGINT NOT NULL, part_name VARCHAR, label VARCHAR)"
    )
    facts.run().succeeded()
    facts.run().succeeded()
    assert facts.query("SELECT count(*), count(DISTINCT line) FROM facts") == [(2 * LINES, LINES)]
    rule = "partition: {range: {column: line, bounds: [0, 1000, 70000]}}"
    facts.package(
        PACKAGE.replace("table: facts, target: replace", f"table: divided, target: replace, load: view, {rule}")
    )
    ended = facts.run()
    assert transforms(ended)[1]["rows"] == LINES
    assert facts.query("SELECT count(*), sum(part_sk) FROM divided") == facts.query(
        "SELECT count(*) // 2, sum(part_sk) // 2 FROM facts"
    )


def test_an_empty_lookup_gives_defaults_and_says_so(facts: Project) -> None:
    facts.file("nothing.csv", "p_partkey|p_sk|p_name\n")
    ended = facts.run("--set", "parts=nothing.csv")
    assert transforms(ended)[0]["matched"] == 0
    assert facts.query("SELECT DISTINCT part_sk, part_name FROM facts") == [(-1, "unknown")]
    notices = [event["text"] for event in facts.events() if event["event"] == "notice"]
    assert "lookup `keyed` has no rows that can be found: all rows get its default" in notices


def test_a_transaction_of_two_flows_with_lookups(facts: Project) -> None:
    head, _, flow = PACKAGE.partition("tasks:\n")
    indented = "".join(f"      {text}\n" for text in flow.splitlines())
    second = indented.replace("load_facts:", "load_more:").replace("table: facts", "table: more")
    facts.package(
        f"{head}tasks:\n  both:\n    sequence:\n      transaction: warehouse\n      tasks:\n{indented}{second}"
    )
    summary = facts.run().succeeded()
    assert [len(table["transforms"]) for table in summary["tables"]] == [2, 2]
    assert differences(facts) == (0, 0, LINES)
    assert facts.query("SELECT count(*) FROM (FROM facts EXCEPT ALL FROM more)") == [(0,)]


def broken(facts: Project, name: str) -> list[str]:
    """Breaks something; arguments of the run that finds it."""
    match name:
        case "duplicate_key":
            facts.file("parts.2", parts(PARTS // 2, PARTS) + "17|1|again\n18|1|again\n")
        case "bad_row":
            facts.file("parts.2", parts(PARTS // 2, PARTS) + "5|many|again\n")
        case "no_file":
            return ["--set", "parts=part.csv"]
        case "no_memory":
            facts.file("parts.2", parts(PARTS // 2, 400_000))
            return ["--set", "memory=275MB"]
        case "pipe":
            return ["--set", "parts=-"]
        case "default_not_null":
            facts.execute("CREATE TABLE facts (line BIGINT, part_sk INTEGER, label VARCHAR NOT NULL)")
        case "type_of_table":
            facts.execute("CREATE TABLE facts (line BIGINT, part_sk SMALLINT, label VARCHAR, part_name DATE)")
        case "key_of_table":
            facts.package(
                PACKAGE.replace("part, type: int32", "part, type: 'decimal(9,2)'").replace(
                    "p_partkey, type: int64", "p_partkey, type: 'decimal(9,2)'"
                )
            )
            facts.execute("CREATE TABLE facts (line BIGINT, part DECIMAL(9,1))")
    return []


@pytest.mark.parametrize(
    "name",
    [
        "duplicate_key",
        "bad_row",
        "no_file",
        "no_memory",
        "pipe",
        "default_not_null",
        "type_of_table",
        "key_of_table",
    ],
)
def test_what_is_said_when_there_is_no_lookup(facts: Project, name: str) -> None:
    ended = facts.run(*broken(facts, name))
    assert ended.exit_code == 1
    # How far the threads had come is an accident.
    text = re.sub(r"found: \d+ MB, and", "found: N MB, and", facts.stable(ended.error))
    assert_snapshot(f"lookup_{name}", text)
    if not facts.database.exists():
        return
    exists = [table for table in facts.tables() if table == "main.facts"]
    assert not exists or facts.query("SELECT count(*) FROM facts") == [(0,)]


def test_ctrl_c_while_a_lookup_is_read(facts: Project) -> None:
    big = facts.file("parts.9", "p_partkey|p_sk|p_name\n" + "".join(map(part, range(PARTS, 20 * PARTS))))
    with big.open("a") as file:
        for number in range(20, 800):
            file.write("".join(map(part, range(number * PARTS, number * PARTS + PARTS))))
    with facts.started(facts.arguments()) as running:
        facts.wait_for_event(running, "lookup_started", lookup="keyed")
        running.signal(signal.SIGINT)
        ended = running.wait()
    assert ended.exit_code == 3
    assert "cancelled" in ended.error
    assert facts.ledger() == ["cancelled"]
    assert facts.leftovers() == []


def test_a_killed_run_is_resumed(facts: Project) -> None:
    with facts.started(facts.arguments()) as running:
        facts.wait_for_event(running, "lookup_read", lookup="colored")
        running.signal(signal.SIGKILL)
        running.wait()
    resumed = facts.resume()
    if resumed.exit_code:  # it had ended before
        assert facts.ledger() == ["success"]
    assert differences(facts) == (0, 0, LINES)


def test_a_run_is_not_resumed_with_other_rows_in_its_lookup(facts: Project) -> None:
    with facts.started(facts.arguments()) as running:
        facts.wait_for_event(running, "lookup_started", lookup="keyed")
        running.signal(signal.SIGKILL)
        running.wait()
    path = facts.inbox / "parts.1"
    path.write_text(path.read_text().replace("|1|", "|2|", 1))
    resumed = facts.resume()
    assert resumed.exit_code == 1
    assert_snapshot("lookup_resumed_changed", facts.stable(resumed.error))


def test_turns_of_a_loop_have_their_own_lookups(facts: Project) -> None:
    head, _, flow = PACKAGE.partition("tasks:\n")
    indented = "".join(f"      {text}\n" for text in flow.splitlines())
    turn = indented.replace('files: "${files}"', 'files: "${name}"').replace("target: replace", "target: append")
    loop = "foreach:\n      item: name\n      in: [lines.1, lines.2]\n      tasks:\n"
    facts.package(f"{head}tasks:\n  each:\n    {loop}{turn}")
    summary = facts.run().succeeded()
    assert [table["transforms"][0]["rows"] for table in summary["tables"]] == [LINES // 2, LINES // 2]
    assert differences(facts) == (0, 0, LINES)


def test_the_memory_of_a_hint_is_enough(facts: Project) -> None:
    """For tiny files and many streams, and for a lookup that is larger than was thought."""
    facts.file("parts.2", parts(PARTS // 2, 400_000))
    memory, said = 120, []
    for _ in range(4):
        ended = facts.run("--streams", "16", "--set", f"memory={memory}MB")
        if ended.exit_code == 0:
            break
        (hint,) = re.findall(r"memory: (\d+) MB` in", ended.error)
        said.append(int(hint))
        memory = int(hint)
    assert ended.exit_code == 0, (said, ended.error)
    assert len(said) <= 3
    assert sorted(set(said)) == said


def test_a_plan_warns_of_lookups_that_do_not_fit(facts: Project) -> None:
    facts.file("parts.2", parts(PARTS // 2, 1_500_000))
    command = [sys.executable, "-m", "headrace", "plan", "package.yaml", "--json", "--set", "memory=300MB"]
    planned = facts.command(command)
    assert planned.exit_code == 0, planned.stderr
    (task,) = json.loads(planned.stdout)["tasks"]
    (note,) = [note for note in task["notes"] if "may need" in note]
    assert re.fullmatch(
        r"`keyed`, `colored` may need up to \d+ MB, and there are [\d.]+ MB: the run fails when these are used up; "
        r"`memory: \d+ MB` is enough",
        note,
    )
    facts.package(PACKAGE.replace("streams: 4", "streams: 16"))
    refused = facts.command([*command[:-1], "memory=215MB"])
    assert refused.exit_code == 1
    assert_snapshot("lookup_no_room", facts.stable(refused.stderr))


@pytest.mark.parametrize("row_end", ["cr", "crlf", "<>"])
def test_rows_are_estimated_whatever_they_end_with(facts: Project, row_end: str) -> None:
    text = {"cr": "\r", "crlf": "\r\n"}.get(row_end, row_end)
    head, _, tail = PACKAGE.partition("  parts:\n    delimiter")
    facts.package(f"{head}  parts:\n    row_end: '{row_end}'\n    delimiter{tail}")
    for name in ("parts.1", "parts.2"):
        path = facts.inbox / name
        path.write_bytes(path.read_text().replace("\n", text).encode())
    command = [sys.executable, "-m", "headrace", "plan", "package.yaml", "--json"]
    (task,) = json.loads(facts.command(command).stdout)["tasks"]
    assert abs(task["transforms"][0]["rows"] - PARTS) < PARTS / 20


def test_what_is_known_of_a_lookup_is_kept(facts: Project) -> None:
    ended = facts.run()
    (table,) = ended.succeeded()["tables"]
    keyed = table["transforms"][0]["lookup"]
    assert [Path(path).name for path in keyed["files"]] == ["parts.1", "parts.2"]
    assert (keyed["lines"], keyed["skipped"], keyed["duplicates"]) == (PARTS + 3, 2, 0)
    (folder,) = (facts.folder / "runs").iterdir()
    (source,) = json.loads((folder / "sources.json").read_text()).values()
    assert [Path(file["path"]).name for file in source["lookups"]["colored"]] == ["colors.csv"]


def test_the_first_of_equal_keys_and_letters_of_any_case(facts: Project) -> None:
    facts.package(PACKAGE.replace("on: {color: code}", "duplicates: first, case: ignore, on: {color: code}"))
    facts.file("colors.csv", "RED,Red\nred,Other\n" + COLORS.replace("green", "gREEN"))
    facts.run().succeeded()
    assert facts.query("SELECT DISTINCT color, label FROM facts WHERE color IN ('red', 'green') ORDER BY 1") == [
        ("green", "Green"),
        ("red", "Red"),
    ]
    notices = [event["text"] for event in facts.events() if event["event"] == "notice"]
    assert "lookup `colored`: 2 rows were left out, because a row before has the key" in notices


def test_verify_does_not_need_the_files_of_lookups(facts: Project) -> None:
    facts.run().succeeded()
    (facts.inbox / "parts.1").unlink()
    (facts.inbox / "colors.csv").write_text("other")
    verify = [sys.executable, "-m", "headrace", "verify", "--runs-dir", "runs", "--json", "last"]
    (table,) = json.loads(facts.command(verify).stdout)["tables"]
    assert (table["status"], table["reason"]) == (
        "not_comparable",
        "its rows have passed a lookup, whose rows may be other ones by now",
    )


def test_rows_that_find_nothing_are_rejects_with_their_places(facts: Project) -> None:
    facts.package(strict(PACKAGE))
    facts.run("--streams", "1").succeeded()
    first = facts.command([sys.executable, "-m", "headrace", "rejects", "--runs-dir", "runs", "last"])
    unknown = LINES - MATCHED
    ended = facts.run("--streams", "16")
    (table,) = ended.succeeded()["tables"]
    assert (table["rows_read"], table["rows_loaded"], table["rows_rejected"]) == (LINES, MATCHED, unknown)
    assert table["rejects"]["by_rule"] == {"no_match": unknown}
    assert transforms(ended)[0] == {
        "name": "keyed",
        "rows": LINES,
        "matched": MATCHED,
        "defaulted": 0,
        "rejected": unknown,
        "null_keys": len(range(0, LINES, 31)),
    }
    assert transforms(ended)[1]["rows"] == MATCHED
    join = JOIN.format(inbox=facts.inbox)
    assert facts.query(f"SELECT count(*) FROM (FROM facts EXCEPT ALL FROM ({join}))") == [(0,)]
    assert facts.query("SELECT count(*), count(*) FILTER (part_sk = -1) FROM facts") == [(MATCHED, 0)]
    # The reject names the row in its file, the field of its key, and the lookup.
    ((reject, *_),) = [table["rejects"]["first"]]
    assert (reject["file"], reject["row"], reject["byte"]) == (str(facts.inbox / "lines.1"), 1, 2)
    second = facts.command([sys.executable, "-m", "headrace", "rejects", "--runs-dir", "runs", "last"])
    assert facts.stable(first.stdout) == facts.stable(second.stdout)
    assert_snapshot("lookup_rejects", facts.stable(second.stdout))


def test_null_of_a_lookup_for_a_column_that_is_not_null_is_a_reject(facts: Project) -> None:
    facts.execute("CREATE TABLE facts (line BIGINT, part_name VARCHAR NOT NULL)")
    facts.package(
        PACKAGE.replace("target: replace", "target: append, columns: {line: line, part_name: part_name}").replace(
            "limit: 10}", "limit: 10000}"
        )
    )
    nameless = sum(
        number % 31 != 0 and (key := number * 7 % (PARTS * 6 // 5)) < PARTS and key % 11 == 0 for number in range(LINES)
    )
    ended = facts.run()
    (table,) = ended.succeeded()["tables"]
    assert table["rejects"]["by_rule"] == {"null_not_allowed": nameless}
    assert transforms(ended)[0]["rejected"] == nameless
    assert facts.query("SELECT count(*) FROM facts") == [(LINES - nameless,)]


def test_a_replay_finds_rows_of_the_lookup_that_came_meanwhile(facts: Project) -> None:
    facts.package(strict(PACKAGE))
    facts.run().succeeded()
    # All the keys that are missing but those of rows without one.
    facts.file("parts.3", parts(PARTS, PARTS * 6 // 5))
    without_key = len(range(0, LINES, 31))
    headrace = [sys.executable, "-m", "headrace"]
    copied = facts.command([*headrace, "rejects", "--runs-dir", "runs", "last", "--copy", "again.csv"])
    assert copied.exit_code == 0, copied.stderr
    ended = facts.command(
        [*headrace, "replay", "--runs-dir", "runs", "--json", "last", "again.csv", "--limit", "20000"]
    )
    assert ended.exit_code == 0, ended.stderr
    (table,) = ended.succeeded()["tables"]
    assert (table["rows_loaded"], table["rows_rejected"]) == (LINES - MATCHED - without_key, without_key)
    assert transforms(ended)[0]["rejected"] == without_key
    join = JOIN.format(inbox=facts.inbox)
    assert facts.query(
        f"SELECT count(*) FROM (FROM facts EXCEPT ALL FROM ({join}))",
    ) == [(0,)]
    assert facts.query("SELECT count(*), count(DISTINCT line) FROM facts") == [(LINES - without_key,) * 2]


@pytest.mark.parametrize("no_match", ["default", "reject"])
def test_a_row_that_breaks_a_constraint_is_found_behind_its_lookup(facts: Project, no_match: str) -> None:
    """By a column that the lookup adds, though rows before it went nowhere."""
    facts.execute("CREATE TABLE facts (line BIGINT, part_sk INTEGER UNIQUE)")
    package = PACKAGE.replace("target: replace", "target: append, columns: {line: line, part_sk: part_sk}")
    facts.package(package if no_match == "default" else strict(package))
    ended = facts.run("--streams", "1")
    assert ended.exit_code == 1
    assert_snapshot(f"lookup_constraint_{no_match}", facts.stable(ended.error))
    again = facts.run("--streams", "7")
    assert facts.stable(again.error) == facts.stable(ended.error)


def test_plan_and_accounts_as_text(facts: Project) -> None:
    facts.execute("SELECT 1")  # what is said of a file that is not there is wrapped by the length of its path
    command = [sys.executable, "-m", "headrace", "plan", "package.yaml"]
    planned = facts.command(command)
    assert planned.exit_code == 0, planned.stderr
    assert_snapshot("lookup_plan", facts.stable(planned.stdout))
    ended = facts.command([*command[:3], "run", "package.yaml", "--runs-dir", "runs"])
    assert ended.exit_code == 0, ended.stderr
    _, _, text = ended.stdout.partition("facts: lookup")
    assert " ".join(text.split()).startswith(
        "keyed: 60,000 rows, 48,386 matched, 11,614 got the default, 1,936 of them without a key "
        "facts: lookup colored: 60,000 rows, 36,000 matched, 24,000 got the default, 12,000 of them without a key"
    )


def test_the_plan_document_says_what_a_lookup_needs(facts: Project, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headrace", "plan", "package.yaml", "--json"]
    (task,) = json.loads(facts.command(command).stdout)["tasks"]
    keyed, colored = task["transforms"]
    assert (keyed["name"], keyed["on"], colored["on"]) == ("keyed", {"part": "p_partkey"}, {"color": "code"})
    assert abs(keyed["rows"] - PARTS) < PARTS / 20
    assert [column["default"] for column in keyed["added"]] == ["-1", "unknown"]
    assert task["memory"]["lookup_bytes"] > keyed["bytes"] > 4 * PARTS
    assert [transform["name"] for transform in task["flow"]["transforms"]] == ["keyed", "colored"]


@pytest.mark.parametrize("fails", ["flow", "lookup"])
def test_a_flow_that_has_failed_keeps_no_lookup(facts: Project, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    """Its error is kept until the run has ended."""
    kept: list[weakref.ref[core.Lookup]] = []

    class Watched(core.Lookup):
        def __init__(self, spec: Mapping[str, Any], is_cancelled: Callable[[], bool] = lambda: False) -> None:
            super().__init__(spec, is_cancelled)
            kept.append(weakref.ref(self))

    monkeypatch.setattr(core, "Lookup", Watched)
    if fails == "flow":
        path = facts.inbox / "lines.2"
        path.write_text(path.read_text() + "bad|1|red|1.00\n" * 11)
    else:
        facts.file("colors.csv", "red,Red\nred,Red\n")
    summary = execute(load_package(facts.folder / "package.yaml"), runs_dir=facts.folder / "runs")
    assert summary.status == "failed"
    assert summary.tables[0].outcome.error is not None
    assert len(kept) == (2 if fails == "flow" else 1)
    assert [own() for own in kept] == [None] * len(kept)
