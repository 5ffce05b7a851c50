"""The binding of the PostgreSQL client, against servers that are not there or never answer.

What it does with real servers is tested in crates/engine/tests/postgres.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from headrace import core
from headrace.errors import CancelledError, HeadraceError, InternalError, TargetBusyError
from tests.patience import HANG_SECONDS

SECRET = "swordfish"


def spec(port: int, **changed: Any) -> dict[str, Any]:
    return {
        "hosts": [{"host": "127.0.0.1", "port": port}],
        "database": "sales",
        "user": "etl",
        "password": SECRET,
        "application_name": "test",
        "tls": {"mode": "disable"},
        "connect_timeout_seconds": 10,
        **changed,
    }


def message(tag: bytes, body: bytes) -> bytes:
    return tag + (len(body) + 4).to_bytes(4, "big") + body


READY = message(b"Z", b"I")
SESSION = (
    message(b"R", bytes(4))
    + message(b"S", b"server_version\x0015.4\x00")
    + message(b"K", (1234).to_bytes(4, "big") + bytes(4))
    + READY
    + message(b"C", b"SET\x00")  # settings
    + READY
    + message(b"C", b"SELECT 0\x00")  # language
    + READY
)


class Server:
    """Says what it is told to its first client, and stays."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.port = port_of(listener)
        self.clients: list[socket.socket] = []

    def say(self, answer: bytes) -> None:
        threading.Thread(target=self._run, args=[answer], daemon=True).start()

    def _run(self, answer: bytes) -> None:
        client, _ = self.listener.accept()
        self.clients.append(client)
        client.sendall(answer)


@pytest.fixture
def server() -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(listener)
        yield server
        for client in server.clients:
            client.close()


def port_of(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


def test_a_refused_connection_is_worth_another_try() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = port_of(listener)
    with pytest.raises(TargetBusyError) as caught:
        core.PostgresConnection(spec(port))
    assert caught.value.retryable
    assert f"127.0.0.1:{port}" in caught.value.what
    assert SECRET not in caught.value.render()


@pytest.mark.parametrize(
    "changed", [{"password": [SECRET]}, {"pasword": SECRET}, {"tls": {"mode": "maybe"}}, {"hosts": None}]
)
def test_a_wrong_specification_does_not_show_the_password(changed: dict[str, Any]) -> None:
    with pytest.raises(InternalError) as caught:
        core.PostgresConnection(spec(1, **changed))
    assert SECRET not in str(caught.value.to_dict())


def test_rows_notices_and_errors_cross_the_binding(server: Server) -> None:
    report = b"SERROR\x00VERROR\x00C23505\x00Mduplicate key\x00nt_pkey\x00\x00"
    rows = (
        message(b"1", b"")
        + message(b"2", b"")
        + message(b"T", b"\x00\x01n\x00" + bytes(18))
        + message(b"D", b"\x00\x01\x00\x00\x00\x0242")
        + message(b"D", b"\x00\x01\xff\xff\xff\xff")
        + message(b"C", b"SELECT 2\x00")
        + message(b"N", b"SNOTICE\x00VNOTICE\x00C00000\x00Mhello\x00\x00")
        + READY
    )
    server.say(SESSION + rows + message(b"E", report) + READY)
    with core.PostgresConnection(spec(server.port)) as connection:
        assert (connection.process_id(), connection.parameter("server_version")) == (1234, "15.4")
        assert connection.query("SELECT n", ["1", None])[:3] == (["n"], [["42"], [None]], "SELECT 2")
        assert [notice["message"] for notice in connection.notices()] == ["hello"]
        with pytest.raises(HeadraceError) as caught:
            connection.execute("INSERT")
        assert caught.value.kind == "target"
        assert caught.value.server == {
            "severity": "ERROR",
            "sqlstate": "23505",
            "message": "duplicate key",
            "constraint": "t_pkey",
        }
    connection.close()
    with pytest.raises(InternalError):
        connection.execute("SELECT 1")


def test_cancel_ends_the_wait_of_another_thread(server: Server) -> None:
    server.say(SESSION)
    connection = core.PostgresConnection(spec(server.port))
    timer = threading.Timer(0.2, connection.cancel)
    timer.start()
    started = time.monotonic()
    with pytest.raises(CancelledError):
        connection.execute("SELECT pg_sleep(1000)")
    # 0.2 s until the call, 0.1 s until it is seen, 0.5 s for a server that does not take the cancel request.
    assert time.monotonic() - started < HANG_SECONDS
    timer.join()
    with pytest.raises(CancelledError):
        connection.execute("SELECT 1")
