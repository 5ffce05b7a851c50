"""SQL of a package that nobody trusts reaches the database and nothing else: it writes no file, not even the one that
grants trust, and shows none.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.integration.driver import Ended, Project

PACKAGE = """
headrace: 1
package: sales
connections:
  warehouse: {type: duckdb, path: warehouse.duckdb}
memory: 200MB
tasks:
  first: {sql: {connection: warehouse, text: "CREATE OR REPLACE TABLE numbers AS SELECT range AS n FROM range(10)"}}
  attack:
    after: first
"""
CANARY = "c4n4ry-S3cret-pw"
GRANT = "COPY (SELECT 'trusted: [/]' AS t) TO '{home}/.config/headrace/config.yaml' (FORMAT csv, HEADER false)"
# Each of them works where nothing is closed, or would after one of the others.
WRITING = {
    "grant of trust": GRANT,
    "copy": "COPY numbers TO '{folder}/stolen.csv'",
    "copy of parquet": "COPY numbers TO '{folder}/stolen.parquet' (FORMAT parquet)",
    "copy out of the spill folder": "COPY numbers TO '{folder}/runs/../stolen.csv'",
    "export": "EXPORT DATABASE '{folder}/stolen'",
    "attach": "ATTACH '{folder}/stolen.duckdb' AS stolen",
    "profile": "SET enable_profiling = 'json'; SET profiling_output = '{folder}/stolen.json'; SELECT 1",
    "profile as text": "SET profile_output = '{folder}/stolen.txt'; SET enable_profiling = 'query_tree'; SELECT 1",
    "log of queries": "SET log_query_path = '{folder}/stolen.log'",
    "log": "CALL enable_logging(storage = 'file', storage_path = '{folder}/stolen'); SELECT 1",
    "log of a function": "SELECT 1 FROM \"Enable_Logging\"(storage = 'file', storage_path = '{folder}/stolen')",
    "secret": "SET secret_directory = '{folder}/stolen'; CREATE PERSISTENT SECRET s (TYPE http, BEARER_TOKEN 'x')",
    "extension": "SET extension_directory = '{folder}/stolen'; INSTALL httpfs",
}
READING = {
    "text": "SELECT content AS v FROM read_text('{folder}/canary.csv')",
    "blob": "SELECT content::VARCHAR AS v FROM read_blob('{folder}/canary.csv')",
    "rows": "SELECT * FROM read_csv('{folder}/canary.csv', header = true, columns = {{'v': 'VARCHAR'}})",
    "name as a table": "SELECT v FROM '{folder}/canary.csv'",
    "names": "SELECT any_value(file) AS v FROM glob('{folder}/*')",
    "looks": "SELECT Columns::VARCHAR AS v FROM sniff_csv('{folder}/canary.csv')",
}
OPENING = {
    "opened again": "SET enable_external_access = true",
    "other folders": "SET allowed_directories = ['/']",
    "other files": "SET allowed_paths = ['/etc/passwd']",
    "other place for spilling": "SET temp_directory = '{folder}/stolen'",
    "native code": "LOAD '{folder}/stolen.duckdb_extension'",
}


@pytest.fixture
def attacked(project: Project) -> Project:
    (project.folder / "home" / ".config" / "headrace").mkdir(parents=True)
    (project.folder / "canary.csv").write_text(f"v\n{CANARY}\n")
    project.environment = {"HOME": str(project.folder / "home"), "XDG_CONFIG_HOME": ""}
    return project


def run(project: Project, task: str, *options: str) -> Ended:
    project.package(f"{PACKAGE}    {task}\n")
    return project.run(*options)


def sql(project: Project, text: str) -> str:
    return f"sql: {{connection: warehouse, transaction: false, text: {json.dumps(filled(project, text))}}}"


def filled(project: Project, text: str) -> str:
    return text.format(folder=project.folder, home=project.folder / "home")


def check_refused(project: Project, ended: Ended) -> None:
    assert ended.exit_code == 1, ended.stderr
    assert "--trust" in ended.error and "Traceback" not in ended.stderr, ended.error
    assert CANARY not in ended.stdout + ended.stderr
    check_nothing_written(project)


def check_nothing_written(project: Project) -> None:
    assert list(project.folder.glob("stolen*")) == []
    assert list((project.folder / "home").rglob("*.yaml")) == []


@pytest.mark.parametrize("name", WRITING)
def test_nothing_is_written(attacked: Project, name: str) -> None:
    check_refused(attacked, run(attacked, sql(attacked, WRITING[name])))


@pytest.mark.parametrize("name", OPENING)
def test_nothing_is_opened_again(attacked: Project, name: str) -> None:
    ended = run(attacked, sql(attacked, f"{OPENING[name]}; {WRITING['copy']}"))
    assert ended.exit_code == 1, ended.stderr
    check_nothing_written(attacked)


# Where a query of a package goes to DuckDB.
QUERIES = {
    "sql task": "sql: {{connection: warehouse, row: {{v: v}}, text: {query}}}\n    variables: {{v: {{type: string}}}}",
    "foreach": "foreach: {{query: {{connection: warehouse, text: {query}}}, as: {{v: string}}, tasks: "
    '{{say: {{sql: {{connection: warehouse, text: "SELECT 1"}}}}}}}}',
    "build": "build: {{connection: warehouse, table: stolen, target: replace, select: {query}}}",
}


@pytest.mark.parametrize("place", QUERIES)
@pytest.mark.parametrize("name", READING)
def test_nothing_is_read(attacked: Project, name: str, place: str) -> None:
    query = json.dumps(filled(attacked, READING[name]))
    check_refused(attacked, run(attacked, QUERIES[place].format(query=query)))


def test_a_lookup_reads_nothing_else(attacked: Project) -> None:
    (attacked.inbox / "rows.csv").write_text("1\n")
    query = filled(attacked, "SELECT 1 AS k, content AS v FROM read_text('{folder}/canary.csv')")
    attacked.package(f"""
headrace: 1
package: sales
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: duckdb, path: warehouse.duckdb}}
layouts:
  rows: {{delimiter: ",", columns: [{{name: id, type: int64}}]}}
tasks:
  load:
    data_flow:
      sources: {{rows: {{connection: inbox, files: rows.csv, layout: rows}}}}
      transforms:
        found: {{input: rows, lookup: {{connection: warehouse, query: {json.dumps(query)}, on: {{id: k}}, add: [v]}}}}
      destinations: {{out: {{input: found, connection: warehouse, table: found, target: replace}}}}
""")
    attacked.execute("CREATE TABLE anything (n INTEGER)")
    for command in (["plan", "package.yaml"], ["run", "package.yaml", "--runs-dir", "runs"]):
        ended = attacked.command([sys.executable, "-m", "headrace", *command])
        assert ended.exit_code == 1 and "--trust" in ended.error, ended.stderr
        assert CANARY not in ended.stdout + ended.stderr
        trusted = attacked.command([sys.executable, "-m", "headrace", *command, "--trust"])
        assert trusted.exit_code == 0, trusted.stderr
    assert CANARY in str(attacked.query("SELECT v FROM found"))


@pytest.mark.parametrize("how", ["option", "config"])
def test_a_trusted_package_reaches_files(attacked: Project, how: str) -> None:
    options = ["--trust"]
    if how == "config":
        options = []
        config = attacked.folder / "home" / ".config" / "headrace" / "config.yaml"
        config.write_text(f"trusted: [{attacked.folder}]\n")
        config.chmod(0o600)
        attacked.folder.chmod(0o755)
    ended = run(attacked, sql(attacked, WRITING["copy"]), *options)
    assert ended.exit_code == 0, ended.stderr
    assert (attacked.folder / "stolen.csv").read_text().splitlines() == ["n", *map(str, range(10))]


def test_spilling_goes_on(attacked: Project) -> None:
    """What does not fit into the memory is still put aside."""
    text = "CREATE TABLE sorted AS SELECT range AS n, md5(range::VARCHAR) AS t FROM range(4000000) ORDER BY t"
    assert run(attacked, sql(attacked, text)).exit_code == 0
    assert attacked.query("SELECT count(*) FROM sorted") == [(4_000_000,)]


GATED = "SELECT CASE WHEN (SELECT count(*) FROM gate) > 0 THEN 1 ELSE error('closed') END; COPY numbers TO 'FILE'"
SWITCH = f'sql: {{connection: warehouse, transaction: false, text: "{GATED}"}}'


@pytest.fixture
def unfinished(attacked: Project) -> tuple[Project, Path]:
    """A trusted run that has failed, and its request."""
    attacked.execute("CREATE TABLE gate (n INTEGER)")
    ended = run(attacked, SWITCH.replace("FILE", str(attacked.folder / "stolen.csv")), "--trust")
    assert ended.exit_code == 1 and "closed" in ended.error, ended.error
    attacked.execute("INSERT INTO gate VALUES (1)")
    (folder,) = attacked.runs.iterdir()
    return attacked, folder / "request.json"


def test_resume_trusts_as_the_run_did(unfinished: tuple[Project, Path]) -> None:
    project, _ = unfinished
    assert project.resume().exit_code == 0
    assert (project.folder / "stolen.csv").exists()


@pytest.mark.parametrize(("place", "mode"), [("file", 0o660), ("file", 0o606), ("folder", 0o770), ("folder", 0o707)])
def test_a_run_folder_that_others_could_change_grants_no_trust(
    unfinished: tuple[Project, Path], place: str, mode: int
) -> None:
    """Somebody may have written into it that it was trusted."""
    project, request = unfinished
    (request if place == "file" else request.parent).chmod(mode)
    ended = project.resume()
    assert ended.exit_code == 5 and "can be changed by others" in ended.error, ended.stderr
    assert not (project.folder / "stolen.csv").exists()
    assert project.resume("--trust").exit_code == 0


def test_a_run_that_was_not_trusted_is_not_when_it_is_resumed(attacked: Project) -> None:
    attacked.execute("CREATE TABLE gate (n INTEGER)")
    task = SWITCH.replace("FILE", str(attacked.folder / "stolen.csv"))
    assert run(attacked, task).exit_code == 1
    attacked.execute("INSERT INTO gate VALUES (1)")
    check_refused(attacked, attacked.resume())
    assert attacked.resume("--trust").exit_code == 0


@pytest.mark.parametrize("text", ["SELECT 'enable_logging' AS t", "SELECT 1 -- enable_logging"])
def test_what_only_looks_like_a_log(attacked: Project, text: str) -> None:
    assert run(attacked, sql(attacked, text)).exit_code == 0
