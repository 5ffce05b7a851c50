"""How many rows may be rejected: limits of a data flow and of the package, and what holds where none are given."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from headrace.model.settings import SettingKind, SpecModel, own_error, setting

MAXIMUM_REJECTS: Final = 2**63 - 1
# Where a percentage is the only limit: for somebody's disk.
LIMIT_BESIDE_OTHERS: Final = 10_000_000
PERCENT_PLACES: Final = 4

_PERCENT: Final = "Percentage of all rows that may be rejected, up to four places behind the point"
_SETTING: Final = SettingKind.SETTING


def _check_percent(value: object) -> object:
    if isinstance(value, int | Decimal) and not isinstance(value, bool) and 0 <= value <= 100:
        exponent = Decimal(value).as_tuple().exponent
        if isinstance(exponent, int) and exponent >= -PERCENT_PLACES:
            return Decimal(value)
    raise own_error("this is no percentage", expected="a number from 0 to 100 with up to four places: 0.5")


Percent = Annotated[
    Decimal,
    BeforeValidator(_check_percent),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": 100}),
]


def _check_table(table: str | None) -> str | None:
    if table is None or (table.strip() and "." not in table and not any(ord(character) < 32 for character in table)):
        return table
    raise own_error(
        "this cannot be a table of rejects",
        expected="a name without a schema: the table stands in the schema of the destination",
    )


def _limit(text: str) -> Any:
    return setting(text, default=None, kind=_SETTING, ge=0, le=MAXIMUM_REJECTS)


class FileRejectsSpec(SpecModel):
    """How many rows of each file may be rejected."""

    limit: int | None = _limit("Number of rows of a file that may be rejected; one more fails the data flow.")
    percent: Percent | None = setting(f"{_PERCENT}, of a file.", default=None, kind=_SETTING)


class RejectsSpec(SpecModel):
    """What to do with rows that cannot be loaded."""

    limit: int | None = _limit(
        "Number of rejected rows that the data flow accepts; one more fails it. Without any limit of the data flow and "
        "of the package 0, beside others 10 million."
    )
    percent: Percent | None = setting(f"{_PERCENT}; judged before the rows are committed.",
                                      default=None, kind=_SETTING)  # fmt: skip
    per_file: FileRejectsSpec | None = setting("The same for each file of the source.", default=None, kind=_SETTING)
    table: Annotated[str | None, AfterValidator(_check_table)] = setting(
        "Table in the schema of the destination that takes the rejects too, in the transaction that completes the data "
        "flow; made if it does not exist.",
        default=None,
        kind=_SETTING,
    )


class PackageRejectsSpec(SpecModel):
    """How many rows of all data flows of a run may be rejected."""

    limit: int | None = _limit(
        "Number of rows of all data flows together that may be rejected; one more fails the run."
    )
    percent: Percent | None = setting(
        f"{_PERCENT}, of all data flows together; judged before each of them commits, over what the run has read.",
        default=None,
        kind=_SETTING,
    )


@dataclass(frozen=True, slots=True)
class RejectBounds:
    """At most so many rows, at most so many of a million; None for no bound."""

    limit: int | None = None
    per_million: int | None = None

    @staticmethod
    def of(spec: RejectsSpec | FileRejectsSpec | PackageRejectsSpec | None) -> RejectBounds | None:
        """The bounds that are given; None without any."""
        if spec is None or (spec.limit is None and spec.percent is None):
            return None
        return RejectBounds(spec.limit, None if spec.percent is None else int(spec.percent * 10**PERCENT_PLACES))

    def to_dict(self) -> dict[str, int | None]:
        """The members of a flow spec."""
        return {"limit": self.limit, "per_million": self.per_million}


@dataclass(frozen=True, slots=True)
class RejectLimits:
    """The limits of one data flow; `run`: those of the package for all of its data flows together."""

    flow: RejectBounds = RejectBounds(0)
    per_file: RejectBounds | None = None
    run: RejectBounds | None = None

    @staticmethod
    def of(spec: RejectsSpec, run: RejectBounds | None) -> RejectLimits:
        """Those of a data flow in a package with the limits `run`."""
        flow = RejectBounds.of(spec) or RejectBounds()
        per_file = RejectBounds.of(spec.per_file)
        if flow.limit is None:
            is_alone = flow.per_million is None and per_file is None and run is None
            flow = RejectBounds(0 if is_alone else LIMIT_BESIDE_OTHERS, flow.per_million)
        return RejectLimits(flow, per_file, run)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        others = {"per_file": self.per_file, "run": self.run}
        return {
            **self.flow.to_dict(),
            **{name: None if bounds is None else bounds.to_dict() for name, bounds in others.items()},
        }
