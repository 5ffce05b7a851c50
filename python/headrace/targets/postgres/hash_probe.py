"""Asks the server where some keys belong before the first row goes anywhere.

It is one test of operator classes, collations and byte order. Were the core of another opinion, a partition would hold
rows that nobody finds there.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Final

from headrace import core
from headrace.errors import TargetError
from headrace.model import DataType
from headrace.planning import HashRule, Partitioning
from headrace.targets.postgres.connection import Connection, array, sql, texts

_KEYS: Final = 30
# The same keys in every run: what fails once fails always.
_SEED: Final = 20260102
_FIRST_DAY: Final = date(1900, 1, 1)
_LETTERS: Final = "abcXYZ 019äß€😀'\\"


def refuse_other_hash(connection: Connection, table_oid: str, partitioning: Partitioning, hash_key: str) -> None:
    """Raises TargetError if the server puts keys of a table that is partitioned by hash elsewhere than the core.

    `hash_key`: how the core hashes them.
    """
    keys = probe_keys(partitioning.type)
    modulus = next(part.rule.modulus for part in partitioning.partitions if isinstance(part.rule, HashRule))
    spec = {
        "type": partitioning.type.to_core(),
        "hash": {"modulus": modulus, "key": hash_key},
        "keys": keys,
    }
    ours = [str(place) for place in core.hash_places(spec)["places"]]
    type_names = texts(connection, sql("column_type"), (table_oid, partitioning.column))
    query = sql("hash_places").format(type=type_names[0] if type_names else "text")
    theirs = texts(connection, query, (table_oid, str(modulus), array(keys)))
    different = [f"{key} in {their}" for key, our, their in zip(keys, ours, theirs, strict=True) if our != their]
    if different:
        raise TargetError(
            f"the server puts keys of `{partitioning.column}` into other partitions than Headrace would",
            found=f"{len(different)} of {len(keys)} keys, such as {different[0]}",
            expected=f"the same of {modulus} partitions by hash for each key",
            hint="Partition by another column or by range, or set `load: single`.",
        )


def probe_keys(data_type: DataType) -> list[str]:
    """Keys of a type as text, from its whole range."""
    generator = random.Random(_SEED)
    make = _MAKERS[data_type.kind]
    return [make(generator, data_type) for _ in range(_KEYS)]


def _whole(bits: int) -> Callable[[random.Random, DataType], str]:
    return lambda generator, _: str(generator.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1)))


def _decimal(generator: random.Random, data_type: DataType) -> str:
    limit = 10 ** (data_type.precision or 1) - 1
    return str(Decimal(generator.randint(-limit, limit)).scaleb(-(data_type.scale or 0)).__format__("f"))


def _float(generator: random.Random, data_type: DataType) -> str:
    # Halves are the same in both widths.
    return str(generator.randrange(-(2**20), 2**20) / 2)


def _text(generator: random.Random, data_type: DataType) -> str:
    return "".join(generator.choices(_LETTERS, k=generator.randint(1, min(data_type.length or 20, 20))))


def _moment(generator: random.Random) -> datetime:
    start = datetime(_FIRST_DAY.year, 1, 1, tzinfo=UTC)
    return start + timedelta(microseconds=generator.randrange(200 * 365 * 86_400 * 10**6))


_MAKERS: Final[dict[str, Callable[[random.Random, DataType], str]]] = {
    "int16": _whole(16),
    "int32": _whole(32),
    "int64": _whole(64),
    "decimal": _decimal,
    "float32": _float,
    "float64": _float,
    "bool": lambda generator, _: generator.choice(("true", "false")),
    "date": lambda generator, _: str(_FIRST_DAY + timedelta(days=generator.randrange(73_000))),
    "time": lambda generator, _: str(time(generator.randrange(24), generator.randrange(60), generator.randrange(60))),
    "timestamp": lambda generator, _: str(_moment(generator).replace(tzinfo=None)),
    "timestamptz": lambda generator, _: str(_moment(generator)),
    "string": _text,
    "char": _text,
    "varchar": _text,
    "bytes": lambda generator, _: "\\x" + generator.randbytes(generator.randint(1, 20)).hex(),
    "uuid": lambda generator, _: str(uuid.UUID(bytes=generator.randbytes(16))),
}
