"""Range partitions that are declared by their bounds, their length or their number."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import TargetError
from headrace.model import Every, RangePartition
from headrace.model.key_values import KeyType, KeyValue
from headrace.model.partition import MAXIMUM_PARTITIONS
from headrace.planning.catalog import CatalogPartition
from headrace.planning.key_questions import KeyScan
from headrace.planning.key_ranges import KeyRange, between, in_type
from headrace.planning.partitioning import RangeRule
from headrace.planning.parts import Part, range_of
from headrace.planning.periods import Grid, grid
from headrace.planning.plan import OutputColumn
from headrace.planning.target_table import TargetTable

_Named = tuple[KeyRange, str | None]


class RangeParts:
    """The range partitions of one table. `kept`: the partitions that stay."""

    def __init__(self, table: TargetTable, key: OutputColumn, kind: KeyType, kept: Sequence[CatalogPartition]) -> None:
        self._table = table
        self._key = key
        self._kind = kind
        self._kept = [
            (part.name, range_of(part, kind, table.name)) for part in kept if isinstance(part.rule, RangeRule)
        ]

    def given(self, bounds: Sequence[str], clause: RangePartition) -> list[Part]:
        """Between bounds, the outer ranges open."""
        keys = [self._kind.parse(text) for text in bounds]
        if clause.boundary == "left":
            keys = [self._moved_up(bound) for bound in keys]
        return self._merged([(keys, None) for keys in between(keys)], may_be_wider=False)

    def equal(self, scan: KeyScan | None) -> list[Part]:
        """Between the quantiles of a scan; or the partitions that the table has."""
        if scan is None:
            return self.present()
        if not scan.rows - scan.nulls:
            return []
        bounds = [self._kind.parse(text) for text in scan.quantiles]
        return self._merged([(keys, None) for keys in between(bounds)], may_be_wider=False)

    def periods(self, every: Every, scan: KeyScan | None) -> list[Part]:
        """Of one length: all between the ends that are given, or those in which keys lie."""
        first, end = (None if text is None else self._kind.parse(text) for text in (every.first, every.end))
        cells = grid(every.size, every.unit, self._key.type, self._kind, end if first is None else first)
        if first is not None and end is not None:
            wanted: Sequence[int] = range(cells.number(first), cells.number(end))
        else:
            wanted = self._occurring(every, cells, scan or KeyScan(0, 0), first, end)
        ranges = [cells.range(number) for number in wanted]
        named = [(keys, None if keys.minimum is None else cells.suffix(keys.minimum)) for keys in ranges]
        return self._merged(named, may_be_wider=True)

    def present(self) -> list[Part]:
        """All that stay, to take the rows."""
        parts = [self._insert(name, keys) for name, keys in sorted(self._kept, key=lambda item: item[1].sort_key())]
        return [part for part in parts if part is not None]

    def _occurring(
        self, every: Every, cells: Grid, scan: KeyScan, first: KeyValue | None, end: KeyValue | None
    ) -> list[int]:
        """Numbers of the ranges in which a key was found, or could be if the scan counted by other ranges."""
        scanned = grid("1" if every.unit else every.size, every.unit, self._key.type, self._kind, None)
        numbers: set[int] = set()
        for text in scan.periods:
            seen = scanned.range(scanned.number(self._kind.parse(text)))
            lowest = cells.number(self._kind.least if seen.minimum is None else seen.minimum)
            last = self._kind.greatest if seen.end is None else seen.end
            highest = cells.number(last)
            if seen.end is not None and cells.range(highest).minimum == last:
                highest -= 1
            numbers.update(range(lowest, highest + 1))
            self._refuse_too_many(len(numbers))
        if first is not None:
            numbers = {number for number in numbers if number >= cells.number(first)}
        if end is not None:
            numbers = {number for number in numbers if number < cells.number(end)}
        return sorted(numbers)

    def _merged(self, wanted: Sequence[_Named], *, may_be_wider: bool) -> list[Part]:
        """New partitions, and where a partition stays that has the same keys (or more of them), that one."""
        parts: dict[str | KeyRange, Part] = {}
        for keys, suffix in wanted:
            found = next(((name, own) for name, own in self._kept if own.overlaps(keys)), None)
            if found is None:
                parts[keys] = Part(keys.rule(self._kind), suffix)
                continue
            name, own = found
            if own != keys and not (may_be_wider and own.contains(keys)):
                raise TargetError(
                    f"partition {name} of table {self._table.name} has other bounds than declared",
                    found=self._shown(own),
                    expected=self._shown(keys),
                    hint=f"Correct `partition` of destination `{self._table.destination.name}`, or use "
                    "`target: replace`.",
                )
            part = self._insert(name, own)
            if part is not None:
                parts[name] = part
        return list(parts.values())

    def _insert(self, name: str, own: KeyRange) -> Part | None:
        keys = in_type(own, self._kind)
        return None if keys is None else Part(keys.rule(self._kind), action="insert", existing=name)

    def _moved_up(self, bound: KeyValue) -> KeyValue:
        """The least key above a bound, in the type of the column in which the keys are stored."""
        catalog = self._table.catalog
        stored = next((item for item in catalog.columns if item.name == self._key.target), None) if catalog else None
        if stored is not None and stored.type is not None and stored.type.scale != self._key.type.scale:
            raise TargetError(
                f"bounds of table {self._table.name} cannot belong to the left",
                found=f"`{stored.name}` of type {stored.native_type}, which holds keys between those of "
                f"{self._key.type}",
                expected="a column whose keys follow each other as those of the source do",
                hint="Use `boundary: right`, or declare the layout's column with as many digits behind the point.",
            )
        try:
            return self._kind.after(bound)
        except OverflowError:
            raise self._misdeclared(
                "nothing is above the last bound", self._kind.text(bound), "a smaller one, or `boundary: right`"
            ) from None

    def _refuse_too_many(self, count: int) -> None:
        if count > MAXIMUM_PARTITIONS:
            raise self._misdeclared(
                "there would be too many partitions", f"more than {MAXIMUM_PARTITIONS}", "longer ranges"
            )

    def _misdeclared(self, what: str, found: str, expected: str) -> TargetError:
        return TargetError(
            f"{what}: table {self._table.name} cannot be partitioned so",
            found=found,
            expected=expected,
            hint=f"Correct `partition` of destination `{self._table.destination.name}`.",
        )

    def _shown(self, keys: KeyRange) -> str:
        minimum = "MINVALUE" if keys.minimum is None else self._text(keys.minimum)
        end = "MAXVALUE" if keys.end is None else self._text(keys.end)
        return f"from {minimum} to before {end}"

    def _text(self, key: KeyValue) -> str:
        """A bound of the table may be finer than the keys of the source."""
        return self._kind.text(key) if self._kind.ceiling(key) == key else str(key)
