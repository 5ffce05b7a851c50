"""A TCP proxy in a thread, with which a test cuts or stalls the connections between a client and a server."""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
from types import TracebackType

_HOST = "127.0.0.1"
_BLOCK_BYTES = 1 << 16
_POLL_SECONDS = 0.05
# What a session of a writer sends before its rows, and what ends its transaction.
_COPY = b"FROM STDIN"
_COMMIT = b"COMMIT\0\0\0"


class Proxy:
    """Passes bytes on. `cut_after`: how many bytes from all clients together, after which every connection is reset.
    `refused`: how many connections are closed at once, as by a server that is not there yet.
    `commits`: how many COMMITs of writers pass; when the next one is sent, everything stalls. Whether that one still
    arrives says `last_arrives`.
    """

    def __init__(
        self,
        port: int,
        cut_after: int | None = None,
        *,
        commits: int | None = None,
        last_arrives: bool = False,
        refused: int = 0,
    ) -> None:
        self.bytes_sent = 0
        self._refused = refused
        self._commits = commits
        self._last_arrives = last_arrives
        self._writers: set[socket.socket] = set()
        self._server_port = port
        self._cut_after = cut_after
        self._cut = threading.Event()
        self._stalled = threading.Event()
        self._stop = threading.Event()
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server((_HOST, 0))
        # Where clients connect to.
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def cut(self) -> None:
        """Resets all connections, now; later ones work."""
        self._cut.set()

    def stall(self) -> None:
        """From now on nothing is passed on, but all connections stay open."""
        self._stalled.set()

    def let_go(self) -> None:
        """Resets all connections that a stall has kept; later ones work."""
        self._commits = None
        self._cut.set()
        self._stalled.clear()

    @property
    def is_stalled(self) -> bool:
        """True when nothing is passed on any more."""
        return self._stalled.is_set()

    def __enter__(self) -> Proxy:
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._reset_all()
        self._listener.close()
        self._selector.close()

    def _serve(self) -> None:
        while not self._stop.is_set():
            if self._cut.is_set():
                self._reset_all()
                self._cut.clear()
            if self._stalled.is_set():
                self._stop.wait(_POLL_SECONDS)
                continue
            for key, _ in self._selector.select(_POLL_SECONDS):
                if self._stalled.is_set():
                    break
                if key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket) and key.fileobj.fileno() >= 0:
                    self._pass_on(key.fileobj, *key.data)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        if self._refused:
            self._refused -= 1
            client.close()
            return
        try:
            server = socket.create_connection((_HOST, self._server_port))
        except OSError:
            client.close()
            return
        self._selector.register(client, selectors.EVENT_READ, (server, True))
        self._selector.register(server, selectors.EVENT_READ, (client, False))

    def _pass_on(self, source: socket.socket, other: socket.socket, from_client: bool) -> None:
        try:
            block = source.recv(_BLOCK_BYTES)
            if block and from_client and self._counted(len(block)):
                self._reset_all()
                return
            if block and from_client and self._is_last_commit(source, block):
                self._stalled.set()
                if not self._last_arrives:
                    return
            other.sendall(block)
        except OSError:
            block = b""
        if not block:
            for end in (source, other):
                self._selector.unregister(end)
                end.close()

    def _is_last_commit(self, client: socket.socket, block: bytes) -> bool:
        """Counts commits of sessions that have copied rows."""
        if self._commits is None:
            return False
        if _COPY in block:
            self._writers.add(client)
        if client not in self._writers or _COMMIT not in block:
            return False
        self._commits -= 1
        return self._commits < 0

    def _counted(self, length: int) -> bool:
        """Counts bytes of clients; True once, when there are enough."""
        self.bytes_sent += length
        if self._cut_after is None or self.bytes_sent < self._cut_after:
            return False
        self._cut_after = None
        return True

    def _reset_all(self) -> None:
        for key in [*self._selector.get_map().values()]:
            if key.fileobj is not self._listener and isinstance(key.fileobj, socket.socket):
                self._selector.unregister(key.fileobj)
                with contextlib.suppress(OSError):
                    key.fileobj.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                key.fileobj.close()
