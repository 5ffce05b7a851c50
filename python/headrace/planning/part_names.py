"""Names of the tables that a load puts beside its target."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import TargetError
from headrace.planning.table_names import highest_number, numbered_name, suffixed_name
from headrace.planning.target_table import TargetTable


def part_names(table: TargetTable, suffixes: Sequence[str | None]) -> list[str]:
    """A name for each new table; without a suffix the next number.

    Appended ones are numbered on from those that are there; what is replaced gives its names free. Raises TargetError
    for a name that is taken.
    """
    capabilities, base = table.capabilities, table.destination.table
    own, maximum = table.own_tables(), capabilities.maximum_name_bytes
    stays = table.destination.target == "append" or bool(table.destination.partitions)
    number = highest_number(base, own, maximum) if stays else 0
    names: list[str] = []
    for suffix in suffixes:
        if suffix is None:
            number += 1
            names.append(numbered_name(base, number, maximum))
        else:
            names.append(suffixed_name(base, suffix, maximum))
    made: set[str] = set()
    own_keys = {capabilities.name_key(name) for name in own}
    taken = {capabilities.name_key(name) for name in table.taken_names}
    taken = taken | own_keys if stays else taken - own_keys
    for name in names:
        key = capabilities.name_key(name)
        if key in taken | made:
            raise TargetError(
                f"a part of table {table.name} would have a name that is taken",
                found=f"`{name}`, which is {_what(key in own_keys, key in made)}",
                hint=f"Rename or drop `{name}`.",
            )
        made.add(key)
    return names


def _what(is_part: bool, is_new: bool) -> str:
    if is_new:
        return "another new part too"
    return "a part with other keys" if is_part else "no part of the table"
