"""How sessions of a destination are opened: all on the server that has answered first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from headrace.errors import CancelledError, HeadraceError, InternalError
from headrace.model import PostgresConnection
from headrace.targets.postgres.connection import Connection, ConnectionSpec, startup_options
from headrace.targets.postgres.failures import sqlstate

Connect = Callable[[ConnectionSpec], Connection]
# The server answers, but does not serve at the moment.
_STARTING: Final = "57P03"


class Sessions:
    """Those of one connection of a package. `connect`: opens one."""

    def __init__(self, model: PostgresConnection, connect: Connect) -> None:
        self._model = model
        self.connect = connect
        self._host: dict[str, Any] | None = None

    def first(self) -> Connection:
        """To the first host that answers. All later sessions go there too, to the very address: another one may be
        another server.
        """
        spec = dict(self._model.to_core("headrace"))
        hosts = [self._host] if self._host else spec["hosts"]
        for number, host in enumerate(hosts, start=1):
            try:
                connection = self.connect({**spec, "hosts": [host]})
            except HeadraceError as error:
                answered = sqlstate(error) not in ("", _STARTING) or isinstance(error, CancelledError)
                if answered or number == len(hosts):
                    raise
                continue
            self._host = {**host, "address": connection.address()}
            return connection
        raise InternalError(f"connection {self._model.name} has no host")

    def spec(self, name: str, settings: Mapping[str, str]) -> dict[str, Any]:
        """How another session logs in, to the very server of the first one."""
        spec = dict(self._model.to_core(name))
        return {**spec, "hosts": [self._host], "options": startup_options(spec.get("options"), settings)}
