"""Random passwords in every form of URL and setting: no part of one is in an output, a file or a run folder.

`HEADRACE_PASSWORDS=50` tries more of them in each form.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headrace.errors import HeadraceError
from headrace.model import load_package
from tests.integration.driver import GOOD_ROWS, Ended, Project
from tests.integration.driver import PACKAGE as SALES
from tests.integration.passwords import Password, passwords_of

# Nobody listens there: a run gets as far as it can without the right password.
SERVER = "127.0.0.1:9/sales?connect_timeout=1"
PACKAGE = SALES.replace("parameters:\n", "parameters:\n  warehouse: {type: string}\n")
ENVIRONMENTS = "headrace: 1\nenvironments: {here: {connections: {warehouse: URL}}}\n"


def raw_url(password: Password) -> str:
    """As people write it who know of no percent codes."""
    return f"postgresql://loader:{password.text}@{SERVER}"


def coded_url(password: Password) -> str:
    return f"postgresql://loader:{password.coded}@{SERVER}"


def query_url(password: Password) -> str:
    return f"postgresql://loader@{SERVER}&password={password.text}"


def words_of(password: Password) -> str:
    return f"host=127.0.0.1 port=9 dbname=sales user=loader connect_timeout=1 password={password.text}"


def quoted_words_of(password: Password) -> str:
    escaped = password.text.replace("\\", "\\\\").replace("'", "\\'")
    return f"password='{escaped}' host=127.0.0.1 port=9 dbname=sales user=loader connect_timeout=1"


TEXTS: dict[str, Callable[[Password], str]] = {
    "url": raw_url,
    "url with percent codes": coded_url,
    "url with a parameter": query_url,
    "words": words_of,
    "quoted words": quoted_words_of,
}


@dataclass
class Given:
    """Where the password is: in the connection of a package (YAML), in variables, files, or on the command line."""

    connection: str = "{type: duckdb, path: warehouse.duckdb}"
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)


def settings(password: Password) -> dict[str, Given]:
    """All that is no text of a connection."""
    keys = "type: postgres, host: 127.0.0.1, port: 9, database: sales, user: loader, connect_timeout_seconds: 1"
    plain = f"postgresql://loader@{SERVER}"
    literal = json.dumps(password.text, ensure_ascii=False)
    line = password.text.replace("\\", "\\\\").replace(":", "\\:")
    return {
        "password of a variable": Given(f'{{{keys}, password: "${{env:SECRET}}"}}', {"SECRET": password.text}),
        "password of a file": Given(f'{{{keys}, password: "${{file:given}}"}}', files={"given": f"{password.text}\n"}),
        "password as it is": Given(f"{{{keys}, password: {literal.replace('$', '$$')}}}"),
        "in the middle of a url": Given(
            f'{{type: postgres, url: "postgresql://loader:${{env:SECRET}}@{SERVER}"}}', {"SECRET": password.text}
        ),
        "PGPASSWORD": Given(f'{{type: postgres, url: "{plain}"}}', {"PGPASSWORD": password.text}),
        "password file": Given(
            f'{{type: postgres, url: "{plain}"}}', {"PGPASSFILE": "given"}, {"given": f"*:*:*:*:{line}\n"}
        ),
        "service file": Given(
            '{type: postgres, url: "service=ours"}',
            {"PGSERVICEFILE": "given"},
            {"given": f"[ours]\nhost=127.0.0.1\nport=9\nuser=loader\npassword={password.text}\n"},
        ),
    }


def places(text: str) -> dict[str, Given]:
    """Where the text of a connection can be."""
    literal = json.dumps(text, ensure_ascii=False)
    option = text if text.startswith("postgresql:") else f"postgres:{text}"
    return {
        "package": Given(f"{{type: postgres, url: {literal.replace('${', '$${')}}}"),
        "variable": Given('{type: postgres, url: "${env:SECRET}"}', {"SECRET": text}),
        "file": Given('{type: postgres, url: "${file:given}"}', files={"given": text}),
        "option": Given(arguments=["--connection", f"warehouse={option}"]),
        "variable of an option": Given(
            environment={"SECRET": option}, arguments=["--connection", "warehouse=${env:SECRET}"]
        ),
        "environment": Given(
            files={"environments.yaml": ENVIRONMENTS.replace("URL", json.dumps(option))},
            arguments=["--env", "here"],
        ),
        "parameter": Given('{type: postgres, url: "${warehouse}"}', arguments=["--set", f"warehouse={text}"]),
    }


COMMANDS = (["check"], ["check", "--json"], ["plan", "--json"], ["run", "--json"], ["run", "--runs-dir", "runs"])


def headrace(project: Project, arguments: list[str], environment: Mapping[str, str]) -> Ended:
    return project.command([sys.executable, "-m", "headrace", *arguments], environment)


def check_commands(project: Project, given: Given, password: Password) -> None:
    written = "{type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}"
    project.package(PACKAGE.replace(written, given.connection))
    for name, text in given.files.items():
        (project.folder / name).write_text(text)
        (project.folder / name).chmod(0o600)
    for command, *options in COMMANDS:
        ended = headrace(project, [command, "package.yaml", *options, *given.arguments], given.environment)
        assert not password.is_shown_in(ended.stdout + ended.stderr), (password, command, ended)
        assert "Traceback" not in ended.stderr and "internal" not in ended.stderr, (password, ended.stderr)
    check_files(project, password, {"package.yaml", *given.files})


def check_files(project: Project, password: Password, given: set[str]) -> None:
    """No file but those in which the test gave the password."""
    written = [path for path in project.folder.rglob("*") if path.is_file() and path.name not in given]
    assert len(written) > 3
    assert [path for path in written if password.is_shown_in(path.read_text("utf-8", "replace"))] == []
    assert [path for path in project.folder.rglob("*") if password.is_shown_in(path.name)] == []


@pytest.fixture
def sales(project: Project) -> Project:
    project.file("orders.tbl.1", GOOD_ROWS)
    return project


@pytest.mark.parametrize("place", places(""))
@pytest.mark.parametrize("form", TEXTS)
def test_a_connection(sales: Project, form: str, place: str) -> None:
    for password in passwords_of(f"{form} {place}"):
        check_commands(sales, places(TEXTS[form](password))[place], password)


@pytest.mark.parametrize("name", settings(Password.random(random.Random(0))))
def test_a_setting(sales: Project, name: str) -> None:
    for password in passwords_of(name):
        check_commands(sales, settings(password)[name], password)


@pytest.mark.parametrize(
    "connection", ['{type: duckdb, path: "${env:SECRET}"}', '{type: files, path: "${env:SECRET}"}']
)
@pytest.mark.parametrize("form", ["url", "url with percent codes", "url with a parameter"])
def test_a_path(sales: Project, connection: str, form: str) -> None:
    for password in passwords_of(f"{form} {connection}"):
        check_commands(sales, Given(connection, {"SECRET": TEXTS[form](password)}), password)


def misplaced(url: str) -> list[list[str]]:
    """Command lines with a URL where there is none to be."""
    return [
        [url],
        [f"--version={url}"],
        *([command, url] for command in ("run", "plan", "check", "resume", "verify", "rejects", "report", "schema")),
        *([command, url] for command in ("infer", "init")),
        ["replay", url, "repaired.csv"],
        ["replay", "last", url],
        ["report", "last", "--against", url],
        ["report", "last", "--output", url],
        ["generate", "tpch", "--out", url],
        ["demo", "--to", url],
        ["demo", "--folder", url],
        ["init", "orders.tbl", "--to", url],
        ["infer", "inbox/orders.tbl.1", "--against", "orders", "--to", url],
        ["bench", "scan", url, "orders", "divided"],
        ["bench", "scan", "duckdb:w.duckdb", url, "divided"],
        ["check", "--file", url, "--layout", "package.yaml"],
        ["check", "--file", "package.yaml", "--layout", url],
        *(
            ["run", "package.yaml", option, value]
            for option, values in {
                "--set": [url, f"nothing={url}", f"missing={url}", f"limit={url}", f"table={url}", f"files={url}"],
                "--connection": [url, f"nothing={url}", f"inbox={url}", f"warehouse=duckdb:{url}"],
                **{
                    option: [url]
                    for option in ("--env", "--only", "--from", "--skip", "--runs-dir", "--engine", "--streams")
                },
                "--log-level": [url],
            }.items()
            for value in values
        ),
        ["run", "package.yaml", url],
        ["run", "package.yaml", f"--nothing={url}"],
    ]


@pytest.mark.parametrize("form", ["url", "url with percent codes"])
@pytest.mark.parametrize("number", range(len(misplaced(""))), ids=[" ".join(words) for words in misplaced("URL")])
def test_a_url_in_a_wrong_place(sales: Project, number: int, form: str) -> None:
    for password in passwords_of(f"{number} {form}"):
        words = misplaced(TEXTS[form](password))[number]
        for json_option in ([], ["--json"]):
            ended = headrace(sales, [*words, *json_option], {})
            assert not password.is_shown_in(ended.stdout + ended.stderr), (password, ended)
            assert ended.exit_code != 0 and "Traceback" not in ended.stderr, (password, ended)
        check_files(sales, password, set())


def test_files_whose_names_look_like_urls_are_paths_still(sales: Project) -> None:
    """What is refused is a URL with a login, not a name with an `@`."""
    folder = sales.folder / "a@b"
    folder.mkdir()
    Path(sales.folder / "package.yaml").rename(folder / "package@c.yaml")
    ended = headrace(sales, ["check", str(folder / "package@c.yaml")], {})
    assert ended.exit_code == 0, ended.stderr


@pytest.mark.parametrize("form", ["url", "url with percent codes"])
def test_a_url_in_the_place_of_a_package_in_python(tmp_path: Path, form: str) -> None:
    for password in passwords_of(form):
        for path in (TEXTS[form](password), Path(TEXTS[form](password))):
            with pytest.raises(HeadraceError) as caught:
                load_package(path, folder=tmp_path)
            assert not password.is_shown_in(caught.value.render() + json.dumps(caught.value.to_dict()))
