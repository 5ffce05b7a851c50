"""What is said when the rows of a lookup do not come."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.errors import CancelledError, HeadraceError, MemoryLimitError, TargetError
from headrace.model import TableSource
from headrace.targets.postgres.lookup_rows import LookupConnection, lookup_rows
from headrace.targets.postgres.names import TableName


def connect() -> LookupConnection:
    return cast(LookupConnection, SimpleNamespace(close=lambda: None))


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (TargetError("the connection was lost"), "reading table w.s.t for lookup `keyed`: the connection was lost"),
        (MemoryLimitError("no memory for lookup `keyed`"), "no memory for lookup `keyed`"),
        (CancelledError("stopped"), "stopped"),
    ],
)
def test_an_error_that_is_not_the_servers_says_of_which_lookup_it_is(error: HeadraceError, what: str) -> None:
    source = TableSource("keyed", cast(Any, SimpleNamespace(name="w")), "s", "t", None)
    with (
        pytest.raises(type(error)) as raised,
        lookup_rows(connect, source, TableName("s", "t"), [], 1),
    ):
        raise error
    assert raised.value.what == what
