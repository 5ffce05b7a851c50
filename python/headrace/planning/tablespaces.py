"""Where a destination puts its new partitions: whether these places are there."""

from __future__ import annotations

from headrace.errors import TargetError
from headrace.model import Destination
from headrace.planning.capabilities import Capabilities


def check_tablespaces(destination: Destination, capabilities: Capabilities, table_name: str) -> None:
    """Raises TargetError for one in which the user cannot make tables. A target without tablespaces takes no notice."""
    there = capabilities.tablespaces
    if destination.partition is None or there is None:
        return
    missing = [name for name in destination.partition.settings.tablespaces if name not in there]
    if missing:
        raise TargetError(
            f"table {table_name} cannot have partitions in tablespace `{missing[0]}`",
            found=f"`{'`, `'.join(missing)}`, which does not exist, or where the user may not make tables",
            expected=f"one of: {', '.join(there)}",
            hint=f"Correct `tablespaces` of destination `{destination.name}`, or GRANT CREATE ON TABLESPACE.",
        )
