"""What a connection string becomes together with variables, password files, service files and defaults."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from headrace.model.conninfo import ConnectionParameters, ConninfoError, Surroundings, parse_conninfo, resolve
from headrace.model.conninfo.parameters import DEFAULT_HOSTS
from tests.snapshots import assert_snapshot


class Home:
    """A home folder with the files of libpq."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, text: str, mode: int = 0o600) -> Path:
        file = self.path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        return file

    def resolve(self, text: str = "", **environ: str) -> ConnectionParameters:
        surroundings = Surroundings(environ, self.path, "me", self.path)
        return resolve(parse_conninfo(text).values, surroundings)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def message(home: Home, text: str, **environ: str) -> str:
    with pytest.raises(ConninfoError) as caught:
        home.resolve(text, **environ)
    error = caught.value
    lines = f"{error.what}\n{error.found}\n{error.expected}\n{error.hint}"
    return lines.replace(str(home.path), "~")


def test_defaults(home: Home) -> None:
    found = home.resolve()
    assert found == ConnectionParameters(hosts=tuple((host, 5432) for host in DEFAULT_HOSTS), database="me", user="me")
    assert DEFAULT_HOSTS == ("/var/run/postgresql", "localhost")
    assert (found.sslmode, found.password, found.keepalive) == ("prefer", None, (60, 10, 6))


ENVIRON = {
    "PGHOST": "h", "PGPORT": "1", "PGDATABASE": "d", "PGUSER": "u", "PGPASSWORD": "p", "PGSSLMODE": "disable",
    "PGCONNECT_TIMEOUT": "7", "PGOPTIONS": "-c x=1", "PGAPPNAME": "ignored",
}  # fmt: skip


def test_variables_stand_in_for_what_is_not_given(home: Home) -> None:
    found = home.resolve("", **ENVIRON)
    assert found == ConnectionParameters((("h", 1),), "d", "u", "p", "-c x=1", "disable", connect_timeout_seconds=7)
    given = home.resolve("postgresql://you@there:2/db", **ENVIRON)
    assert (given.hosts, given.database, given.user, given.password) == ((("there", 2),), "db", "you", "p")


def test_an_empty_variable_says_nothing(home: Home) -> None:
    assert home.resolve("", PGHOST="", PGPORT="", PGSSLMODE="") == home.resolve()


def test_the_database_is_called_like_the_user(home: Home) -> None:
    assert home.resolve("user=you").database == "you"
    assert home.resolve("user=you dbname=''", PGDATABASE="d").database == "you"


HOSTS: dict[str, tuple[tuple[str, int], ...]] = {
    "host=a,b port=1,2": (("a", 1), ("b", 2)),
    "host=a,b port=1": (("a", 1), ("b", 1)),
    "host=a,,b": (("a", 5432), ("/var/run/postgresql", 5432), ("b", 5432)),
    "postgresql://a,b:6/d": (("a", 5432), ("b", 6)),
    "host=/tmp port=7": (("/tmp", 7),),
    "host='' port=7": tuple((host, 7) for host in DEFAULT_HOSTS),
}


@pytest.mark.parametrize("text", HOSTS)
def test_hosts(home: Home, text: str) -> None:
    assert home.resolve(text).hosts == HOSTS[text]


REFUSED: dict[str, tuple[str, dict[str, str]]] = {
    "ports": ("host=a,b port=1,2,3", {}),
    "port": ("port=70000", {}),
    "port_word": ("port=five", {}),
    "timeout": ("connect_timeout=long", {}),
    "count": ("keepalives_count=-1", {}),
    "sslmode": ("sslmode=verify_full", {}),
    "system_certificates": ("sslrootcert=system sslmode=require", {}),
    "no_service": ("service=sales", {}),
    "no_service_file": ("service=sales", {"PGSERVICEFILE": "nowhere"}),
    "variable": ("", {"PGCHANNELBINDING": "require"}),
    "key_missing": ("sslcert=mine.crt", {}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(home: Home, name: str) -> None:
    text, environ = REFUSED[name]
    assert_snapshot(f"conninfo_parameters_{name}", message(home, text, **environ))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ("connect_timeout_seconds", 30)),
        ("connect_timeout=0", ("connect_timeout_seconds", 0)),
        ("connect_timeout=-1", ("connect_timeout_seconds", 0)),
        ("keepalives=0", ("keepalive", None)),
        ("keepalives_idle=5 keepalives_count=0", ("keepalive", (5, 10, 6))),
        ("tcp_user_timeout=1000", ("user_timeout_milliseconds", 1000)),
    ],
)
def test_times(home: Home, text: str, expected: tuple[str, Any]) -> None:
    assert getattr(home.resolve(text), expected[0]) == expected[1]


def test_the_name_of_the_application_is_ours_and_that_is_said(home: Home) -> None:
    assert home.resolve("application_name=mine").warnings == (
        "`application_name` of the connection is not used: sessions are named after run, task and writer",
    )
    assert home.resolve("", PGAPPNAME="mine").warnings == ()


# --- password files --------------------------------------------------------------------------------------------------

PASSFILE = r"""# host:port:database:user:password
db.example.com:5432:sales:me:first
localhost:*:*:me:local
*:*:with\:colon:me:escaped\:\\
\*:*:*:me:star
*:*:*:reader:second:with:colons
short:line
"""


@pytest.mark.parametrize(
    ("text", "password"),
    [
        ("host=db.example.com dbname=sales", "first"),
        ("host=db.example.com dbname=other", None),
        ("host=db.example.com dbname=sales port=5433", None),
        ("", "local"),
        ("host=/var/run/postgresql", "local"),
        ("host=/tmp", "local"),
        ("host=/other/folder", None),
        ("host=x dbname=with:colon", "escaped:\\"),
        ("host=*", "star"),
        ("host=x user=reader", "second:with:colons"),
        ("host=x user=reader password=given", "given"),
    ],
)
def test_password_file(home: Home, text: str, password: str | None) -> None:
    home.write(".pgpass", PASSFILE)
    assert home.resolve(text).password == password


def test_another_password_file(home: Home) -> None:
    home.write("other", "*:*:*:*:there\r\n")
    assert home.resolve("passfile=other").password == "there"
    assert home.resolve("", PGPASSFILE=str(home.path / "other")).password == "there"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_password_file_that_others_may_read_is_ignored(home: Home, mode: int) -> None:
    file = home.write(".pgpass", PASSFILE, mode)
    found = home.resolve("host=db.example.com,db.example.com dbname=sales")
    assert found.password is None
    assert found.warnings == (f"password file {file} is ignored: others have access (mode {mode:04o}, must be 0600)",)


def test_a_password_file_that_is_none(home: Home) -> None:
    (home.path / ".pgpass").mkdir()
    assert home.resolve().warnings == (f"password file {home.path / '.pgpass'} is ignored: it is not a plain file",)


def test_different_passwords_for_the_hosts(home: Home) -> None:
    home.write(".pgpass", "a:*:*:*:one\nb:*:*:*:two\n")
    assert home.resolve("host=a,c").password == "one"
    assert_snapshot("conninfo_parameters_two_passwords", message(home, "host=a,b"))


# --- service files ---------------------------------------------------------------------------------------------------

SERVICES = """
# comment
[other]
host=elsewhere

[sales]
host=db.example.com
 port=6
user=seller
user=second
[sales]
port=9
"""


def test_service(home: Home) -> None:
    home.write(".pg_service.conf", SERVICES)
    found = home.resolve("service=sales user=me", PGHOST="ignored", PGDATABASE="d")
    assert (found.hosts, found.user, found.database) == ((("db.example.com", 6),), "me", "d")
    assert home.resolve("", PGSERVICE="sales").user == "seller"


def test_service_of_the_system(home: Home) -> None:
    home.write("etc/pg_service.conf", SERVICES)
    home.write(".pg_service.conf", "[mine]\nhost=a\n")
    assert home.resolve("service=sales", PGSYSCONFDIR=str(home.path / "etc")).user == "seller"


@pytest.mark.parametrize("line", ["host", "service=other", "hots=a"])
def test_a_wrong_service_file(home: Home, line: str) -> None:
    home.write("services", f"[sales]\n{line}\n")
    assert_snapshot(
        f"conninfo_parameters_service_{line.split('=')[0]}", message(home, "service=sales servicefile=services")
    )


# --- TLS -------------------------------------------------------------------------------------------------------------


def test_certificates_of_the_home_folder(home: Home) -> None:
    root = home.write(".postgresql/root.crt", "")
    certificate = home.write(".postgresql/postgresql.crt", "")
    key = home.write(".postgresql/postgresql.key", "")
    found = home.resolve("sslmode=require")
    assert (found.root_certificates, found.certificate, found.key) == (str(root), str(certificate), str(key))


def test_without_certificates(home: Home) -> None:
    assert home.resolve("sslmode=require").root_certificates is None
    # Verifying does not go without: the file that is missing is named when the connection is made.
    assert home.resolve("sslmode=verify-full").root_certificates == str(home.path / ".postgresql" / "root.crt")


def test_given_certificates(home: Home) -> None:
    home.write("mine.key", "")
    found = home.resolve("sslrootcert=ca.crt sslcert=mine.crt sslkey=mine.key")
    assert found.root_certificates == str(home.path / "ca.crt")
    assert (found.certificate, found.key) == (str(home.path / "mine.crt"), str(home.path / "mine.key"))


def test_certificates_of_the_system(home: Home) -> None:
    found = home.resolve("sslrootcert=system")
    assert (found.root_certificates, found.sslmode) == ("system", "verify-full")


def test_a_key_that_others_may_read_is_refused(home: Home) -> None:
    allowed = "0640" if os.geteuid() == 0 else "0600"
    home.write("mine.key", "", 0o644)
    text = message(home, "sslcert=mine.crt sslkey=mine.key")
    assert "others have access to the key of the client certificate" in text
    assert f"Run: chmod {allowed} ~/mine.key" in text


# --- what the core gets ----------------------------------------------------------------------------------------------


def test_the_spec_of_the_core(home: Home) -> None:
    found = home.resolve("postgresql://u:secret@a:1,b:2/d?keepalives=0&options=-cgeqo%3Doff&connect_timeout=5")
    assert found.to_core("headrace 1") == {
        "hosts": [{"host": "a", "port": 1}, {"host": "b", "port": 2}],
        "database": "d",
        "user": "u",
        "password": "secret",
        "application_name": "headrace 1",
        "options": "-cgeqo=off",
        "tls": {"mode": "prefer", "root_certificates": None, "certificate": None, "key": None},
        "connect_timeout_seconds": 5.0,
        "keepalive": None,
        "user_timeout_milliseconds": None,
    }
    assert home.resolve().to_core("x")["keepalive"] == {"idle_seconds": 60, "interval_seconds": 10, "count": 6}
    assert "secret" not in repr(found)
