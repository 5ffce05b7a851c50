"""What has to be known of the source's keys before a load into partitions can be planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headrace.model import DataFlowTask, Every, FileSource, ListPartition, Quantiles, RangePartition
from headrace.planning.capabilities import Capabilities
from headrace.planning.catalog import CatalogTable
from headrace.planning.partition_key import (
    bounds_of_files,
    check_partitioning,
    is_enforced,
    is_partitioned,
    key_column,
)
from headrace.planning.types_match import TEXT_KINDS

# Of so many a table's own comparison is asked for each: a moment, and a few MB. The core keeps 16 MB of text.
MOST_DIFFERENT_KEYS: Final = 100_000


@dataclass(frozen=True)
class FileKeys:
    """Canonical text of the keys in a file's first and last row; None if no row of the file conforms to the layout."""

    first: str | None
    last: str | None


@dataclass(frozen=True)
class KeyScan:
    """What all keys of a source are, as canonical texts in rising order.

    `periods`: the first key of each period in which keys lie; `quantiles`: the first key of each part but the first;
    `distinct`: the different keys, None if they were not asked for or are too many.
    """

    rows: int
    nulls: int
    periods: tuple[str, ...] = ()
    quantiles: tuple[str, ...] = ()
    distinct: tuple[str, ...] | None = None


@dataclass(frozen=True)
class KeyQuestion:
    """About the source column `column`: the ends of each file, or with `scan` (the `want` of a scan) all keys."""

    column: str
    scan: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class KeyFacts:
    """The answers. `cpus`: usable ones of this machine, the default number of partitions by hash."""

    files: Sequence[FileKeys] | None = None
    scan: KeyScan | None = None
    cpus: int = 1

    @property
    def has_keys(self) -> bool:
        """False if it is known that no row has a key."""
        if self.scan is not None:
            return self.scan.rows > self.scan.nulls
        return self.files is None or any(file.first is not None for file in self.files)

    @classmethod
    def of(cls, question: KeyQuestion | None, reply: Mapping[str, Any] | None, cpus: int) -> KeyFacts:
        """From the reply of the core to a question."""
        if question is None or reply is None:
            return cls(cpus=cpus)
        if question.scan is None:
            return cls(files=[FileKeys(file["first"], file["last"]) for file in reply["files"]], cpus=cpus)
        periods, quantiles = reply.get("periods") or (), reply.get("quantiles") or ()
        distinct = tuple(reply["distinct"]) if "distinct" in reply else None
        scan = KeyScan(reply["rows"], reply["nulls"], tuple(periods), tuple(quantiles), distinct)
        return cls(scan=scan, cpus=cpus)


def key_question(
    task: DataFlowTask, catalog: CatalogTable | None, capabilities: Capabilities, table_name: str
) -> KeyQuestion | None:
    """None for a flow whose partitions follow from the package and the table alone.

    Raises TargetError if the column cannot be a key, or if the existing table `catalog` is divided otherwise: before
    all keys are read in vain.
    """
    destination = task.destination
    clause = destination.partition
    is_whole = is_enforced(task, capabilities)
    if clause is None or not (is_whole or is_partitioned(task, capabilities)):
        return None
    column = key_column(task, capabilities, table_name)
    if is_whole:
        return None  # the rule of the whole table follows from the package
    if catalog is not None:
        check_partitioning(catalog, clause, column, capabilities, (table_name, destination.name))
    if isinstance(clause, ListPartition):
        may_reject = clause.settings.outside == "reject" or destination.partitions
        by_own_rules = catalog is not None and catalog.partitioning is not None and catalog.partitioning.comparison
        # Which keys belong nowhere is asked of the target, because only it knows which keys are equal.
        is_asked = may_reject and by_own_rules and column.type.kind in TEXT_KINDS
        is_asked = is_asked and isinstance(task.source, FileSource) and task.together is None
        return KeyQuestion(column.name, {"distinct": MOST_DIFFERENT_KEYS}) if is_asked else None
    if not isinstance(clause, RangePartition) or destination.partitions:
        return None
    if bounds_of_files(destination):
        return KeyQuestion(column.name)
    bounds = clause.bounds
    if isinstance(bounds, Quantiles):
        # A table that has partitions keeps them.
        stays = destination.target == "append" and catalog and catalog.partitioning and catalog.partitioning.partitions
        return None if stays else KeyQuestion(column.name, {"quantiles": bounds.parts})
    if isinstance(bounds, Every) and (bounds.first is None or bounds.end is None):
        period = {"step": bounds.size} if bounds.unit is None else {"unit": bounds.unit}
        return KeyQuestion(column.name, {"periods": period})
    return None
