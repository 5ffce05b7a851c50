"""Names and quoting: identifiers, literals, staging tables, sessions, and the keys of advisory locks."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from headrace.planning import ALL_PARTITIONS, STRAYS, WHOLE_TABLE, refuse_cut_name
from headrace.targets.postgres.capabilities import MAXIMUM_NAME_BYTES

# What the writers append to the application name: ` w4096`.
_WRITER_BYTES: Final = 6
_LABEL_BYTES: Final = 16
_KEY_DIGITS: Final = 8
# What stands for the name of a partition that is no number.
_SHORT: Final = {WHOLE_TABLE: "s", STRAYS: "x", ALL_PARTITIONS: "p"}


@dataclass(frozen=True)
class TableName:
    """A table with its schema, both as the catalog has them."""

    schema: str
    name: str

    @property
    def sql(self) -> str:
        """Quoted, for statements."""
        return f"{quote(self.schema)}.{quote(self.name)}"

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True)
class StagingName:
    """What the name of a staging table tells: its run, the key of its target table, and its partition."""

    run_id: str
    table_key: str
    partition: str


def quote(identifier: str) -> str:
    """A quoted identifier. Raises TargetError for one that the server would cut: the last one to see all of them."""
    refuse_cut_name("a table, column or the like", identifier, MAXIMUM_NAME_BYTES)
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A string literal. The session has standard_conforming_strings on, so that a backslash is a backslash."""
    return "'" + text.replace("'", "''") + "'"


def short_name(text: str, suffix: str = "") -> str:
    """`text` and `suffix`, `text` cut so that both fit into a name of the server."""
    room = MAXIMUM_NAME_BYTES - len(suffix.encode())
    return text.encode()[:room].decode(errors="ignore") + suffix


def table_key(table: TableName) -> str:
    """A short name of a table that is the same in every run."""
    return _digest(f"{table.schema}\0{table.name}").hex()[:_KEY_DIGITS]


def staging_name(run_id: str, table: TableName, partition: str) -> str:
    """`<run id>_<some letters of the table>_<key of the table>_<partition, or p, s, x>`: ASCII, at most 63 bytes."""
    label = "".join(letter for letter in table.name.lower() if letter.isascii() and letter.isalnum())
    return f"{run_id}_{label[:_LABEL_BYTES]}_{table_key(table)}_{_SHORT.get(partition, partition)}"


def parse_staging_name(name: str) -> StagingName | None:
    """What `staging_name` was given; None for the name of another table."""
    parts = name.rsplit("_", 3)
    if len(parts) != 4 or len(parts[2]) != _KEY_DIGITS:
        return None
    partition = next((long for long, short in _SHORT.items() if short == parts[3]), parts[3])
    return StagingName(parts[0], parts[2], partition) if partition in _SHORT or partition.isdecimal() else None


def session_name(run_id: str, task: str) -> str:
    """The application name of a task's sessions, with room for the number that a writer appends.

    For people only: anybody can call a session so. ASCII, because the server replaces everything else.
    """
    name = f"headrace {run_id} {task}".encode("ascii", "replace").decode()
    return name[: MAXIMUM_NAME_BYTES - _WRITER_BYTES]


def run_lock_key(run_id: str) -> int:
    """Key of the advisory lock that a living run holds."""
    return _lock_key(f"headrace run\0{run_id}")


def writers_lock_key(run_id: str) -> int:
    """Key of the advisory lock that every writer of a run shares while its transaction is open."""
    return _lock_key(f"headrace writers\0{run_id}")


def table_lock_key(database: str, table: TableName) -> int:
    """Key of the advisory lock that the one run holds which loads the table."""
    return _lock_key(f"headrace table\0{database}\0{table.schema}\0{table.name}")


def ledger_lock_key(schema: str) -> int:
    """Key of the advisory lock of whoever creates the ledger."""
    return _lock_key(f"headrace ledger\0{schema}")


def _lock_key(text: str) -> int:
    return int.from_bytes(_digest(text)[:8], "big", signed=True)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
