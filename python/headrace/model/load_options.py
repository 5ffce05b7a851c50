"""What bulk loaders call fast load options."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Literal


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The options and their defaults; the settings of the same names in `spec_data_flow` say what each means."""

    lock: bool = False
    check_constraints: bool = True
    keep_identity: bool = True
    disable_triggers: bool = False
    analyze: bool = False
    indexes: Literal["before", "after"] = "after"

    def to_dict(self) -> dict[str, object]:
        """JSON-ready form."""
        return asdict(self)

    def changed(self) -> list[str]:
        """Names of the options that differ from their defaults."""
        return [item.name for item in fields(self) if getattr(self, item.name) != item.default]


DEFAULT_OPTIONS = LoadOptions()
