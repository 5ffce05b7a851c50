"""Bind the `partition` clause of a destination: its values become canonical text of the source column's type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from headrace.model.bound import FirstColumn, Source
from headrace.model.file_source import GenerateSource
from headrace.model.key_kinds import HASH_KINDS
from headrace.model.key_values import KeyType, key_type
from headrace.model.literals import canonical_text
from headrace.model.partition import (
    MAXIMUM_PARTITIONS,
    Every,
    HashPartition,
    ListPartition,
    PartitionClause,
    PartitionSettings,
    Quantiles,
    RangePartition,
)
from headrace.model.periods import begins_unit, periods_between
from headrace.model.problems import ProblemCollector
from headrace.model.spec_partition import ListPartitionSpec, PartitionSpec, Period, RangePartitionSpec
from headrace.model.suggest import did_you_mean, one_of, quote, show_name, show_value
from headrace.model.validation import place_name
from headrace.model.yaml_reader import Document, DocumentPath

_NUMBERS = ("int16", "int32", "int64", "decimal")
_DAYS = ("date", "timestamp", "timestamptz")


class PartitionBinder:
    """Binds the clause that stands at `path` of a document. Problems are noted there."""

    def __init__(self, document: Document, problems: ProblemCollector, path: DocumentPath) -> None:
        self._document = document
        self._problems = problems
        self._path = path

    def bind(
        self,
        spec: PartitionSpec,
        source: Source | None,
        columns: Sequence[FirstColumn],
        mapping: Mapping[str, str] | None,
        *,
        is_reload: bool,
    ) -> PartitionClause | None:
        """The clause; None without partitions, or with a problem. `columns`: those of the rows that are read;
        `mapping`: the destination's; `is_reload`: partitions that exist are loaded, so that no new bounds are looked
        for.
        """
        settings = PartitionSettings(spec.outside, tuple(spec.tablespaces or ()), spec.keep)
        strategy = "range" if spec.range else "list" if spec.list else "hash"
        clause = spec.range or spec.list or spec.hash
        if clause is None or clause.column is None:
            return None
        path = (*self._path, strategy)
        column = self._key(clause.column, columns, mapping, (*path, "column"))
        if column is None:
            return None
        if isinstance(clause, RangePartitionSpec):
            found = self._range(clause, clause.column, column, source, settings, path)
            is_by_files = found is not None and found.bounds == "files" and not is_reload
            return None if is_by_files and not self._ends_can_be_found(source, path) else found
        if isinstance(clause, ListPartitionSpec):
            return self._list(clause, clause.column, column, settings, path)
        if column.type.kind not in HASH_KINDS:
            self._without_hash(column, path)
            return None
        return HashPartition(clause.column, clause.parts, settings)

    def _key(
        self, name: str, columns: Sequence[FirstColumn], mapping: Mapping[str, str] | None, path: DocumentPath
    ) -> FirstColumn | None:
        """The column of the rows that goes into the target's column `name`."""
        mapping = mapping or {column.name: column.name for column in columns}
        wanted = next((own for target, own in mapping.items() if target.lower() == name.lower()), None)
        if wanted is None:
            self._problems.add(
                self._document,
                path,
                f"no column goes into the partition key `{show_name(name)}`",
                found=quote(name),
                expected=one_of(mapping),
                hint=did_you_mean(name, mapping) or "Name a column that is loaded.",
            )
        column = next((column for column in columns if column.name == wanted), None)
        if column is not None and column.from_ is not None:
            self._problems.add(
                self._document,
                path,
                f"column `{show_name(column.name)}` is made from `{column.from_}`, and cannot be a partition key",
                expected="a column that is read from the file",
                hint="Leave `partition` out, or choose another key.",
            )
            return None
        return column

    def _range(
        self,
        spec: RangePartitionSpec,
        name: str,
        column: FirstColumn,
        source: Source | None,
        settings: PartitionSettings,
        path: DocumentPath,
    ) -> RangePartition | None:
        kind = key_type(column.type)
        if kind is None:
            self._without_order(column, path)
            return None
        if not self._can_be_found(spec, source, path):
            return None
        if isinstance(spec.bounds, list):
            found = [self._value(value, column, (*path, "bounds", number)) for number, value in enumerate(spec.bounds)]
            bounds = tuple(text for text in found if text is not None)
            places = [(*path, "bounds", number) for number in range(len(found))]
            if len(bounds) < len(found) or not self._rise(bounds, kind, places):
                return None
            if spec.boundary == "left" and not self._has_next(bounds[-1], kind, places[-1]):
                return None
            return RangePartition(name, bounds, spec.boundary, settings)
        if isinstance(spec.every, Period):
            every = self._every(spec, spec.every, column, kind, path)
            return None if every is None else RangePartition(name, every, settings=settings)
        return RangePartition(name, "files" if spec.parts is None else Quantiles(spec.parts), settings=settings)

    def _can_be_found(self, spec: RangePartitionSpec, source: Source | None, path: DocumentPath) -> bool:
        """Rows that are generated cannot be looked at before."""
        is_given = isinstance(spec.bounds, list) or (spec.every and spec.from_ is not None and spec.to is not None)
        if is_given or not isinstance(source, GenerateSource):
            return True
        self._problems.add(
            self._document,
            (*path, "column"),
            "a generated source has no files whose keys could bound partitions",
            expected="`bounds` as a list of keys, or `every` with `from` and `to`",
            hint="Give the bounds, leave `partition` out, or load files.",
        )
        return False

    def _ends_can_be_found(self, source: Source | None, path: DocumentPath) -> bool:
        """Whether the last row of a file can: with a qualifier only who has read all of it knows where it begins."""
        if source is None or source.layout.qualifier is None or isinstance(source, GenerateSource):
            return True
        self._problems.add(
            self._document,
            (*path, "column"),
            "files with a qualifier cannot be partitions: their last rows are found only by reading all of them",
            found="a layout with a qualifier",
            expected="`bounds` as a list of keys, `every` or `parts`",
            hint="Give one of these, or leave the qualifier out if the files do without.",
        )
        return False

    def _without_hash(self, column: FirstColumn, path: DocumentPath) -> None:
        self._problems.add(
            self._document,
            (*path, "column"),
            f"the column `{show_name(column.name)}` cannot be divided by hash",
            found=f"type {column.type}",
            expected=f"a type whose values have a hash: {', '.join(sorted(HASH_KINDS))}",
            hint="Choose another column.",
        )

    def _without_order(self, column: FirstColumn, path: DocumentPath) -> None:
        self._problems.add(
            self._document,
            (*path, "column"),
            f"the column `{show_name(column.name)}` cannot be divided into ranges",
            found=f"type {column.type}",
            expected="a type whose values follow each other: whole numbers, decimals, dates and timestamps",
            hint="Choose another column, or divide by `list` or `hash`.",
        )

    def _has_next(self, bound: str, kind: KeyType, path: DocumentPath) -> bool:
        """Whether a bound can be moved up; a problem is noted if nothing of its type is above it."""
        try:
            kind.after(kind.parse(bound))
        except OverflowError:
            self._problems.add(
                self._document,
                path,
                "nothing is above the last bound, and with `boundary: left` it belongs to the range below",
                found=bound,
                expected="a smaller one, or `boundary: right`",
            )
            return False
        return True

    def _every(
        self, spec: RangePartitionSpec, period: Period, column: FirstColumn, kind: KeyType, path: DocumentPath
    ) -> Every | None:
        kinds = _NUMBERS if period.unit is None else _DAYS[1:] if period.unit == "hour" else _DAYS
        if column.type.kind not in kinds:
            self._problems.add(
                self._document,
                (*path, "every"),
                f"{place_name((*path, 'every'))} does not fit the column `{show_name(column.name)}`",
                found=f"type {column.type}",
                expected=f"a column of type {', '.join(kinds)}",
                hint="Write for example `1 month` for dates and times, or 1000 for numbers.",
            )
            return None
        size = period.size
        if period.unit is None:
            found_size = self._value(size, column, (*path, "every"))
            if found_size is None:
                return None
            size = found_size
        ends = {
            key: None if value is None else self._value(value, column, (*path, key))
            for key, value in (("from", spec.from_), ("to", spec.to))
        }
        if any(ends[key] is None and value is not None for key, value in (("from", spec.from_), ("to", spec.to))):
            return None
        begin = [self._begins(text, period, kind, (*path, key)) for key, text in ends.items() if text is not None]
        if not all(begin):
            return None
        every = Every(size, period.unit, ends["from"], ends["to"])
        return every if self._fits(every, kind, (*path, "to")) else None

    def _begins(self, text: str, period: Period, kind: KeyType, path: DocumentPath) -> bool:
        """Whether a key is the beginning of a unit; otherwise a problem is noted."""
        if period.unit is None or begins_unit(kind.parse(text), period.unit):
            return True
        unit = "day" if period.unit == "week" else period.unit
        self._problems.add(
            self._document,
            path,
            f"{place_name(path)} is not the beginning of {'an' if unit == 'hour' else 'a'} {unit}",
            found=text,
            expected=f"the first moment of {'an' if unit == 'hour' else 'a'} {unit}",
        )
        return False

    def _fits(self, every: Every, kind: KeyType, path: DocumentPath) -> bool:
        """Whether `to` ends one of the ranges that begin with `from`; otherwise a problem is noted."""
        if every.first is None or every.end is None:
            return True
        if not self._rise((every.first, every.end), kind, ((), path)):
            return False
        ranges = periods_between(kind.parse(every.first), kind.parse(every.end), every.size, every.unit)
        step = every.size if every.unit is None else f"{every.size} {every.unit}{'' if every.size == '1' else 's'}"
        found = f"{every.first} to {every.end} in steps of {step}"
        if ranges.denominator != 1:
            what, expected = f"{place_name(path)} is not the end of a range", "a whole number of steps"
        elif ranges > MAXIMUM_PARTITIONS:
            what, expected = "there would be too many partitions", f"at most {MAXIMUM_PARTITIONS:,}"
            found = f"{found}: {int(ranges):,} partitions"
        else:
            return True
        self._problems.add(self._document, path, what, found=found, expected=expected)
        return False

    def _list(
        self, spec: ListPartitionSpec, name: str, column: FirstColumn, settings: PartitionSettings, path: DocumentPath
    ) -> ListPartition | None:
        lists: list[tuple[str, tuple[str | None, ...]]] = []
        owners: dict[str | None, str] = {}
        is_right = True
        for partition, values in spec.values.items():
            texts: list[str | None] = []
            for number, value in enumerate(values):
                place = (*path, "values", partition, number)
                text = None if value is None else self._value(value, column, place)
                if text is None and value is not None:
                    is_right = False
                elif text in owners:
                    is_right = False
                    self._twice(value, partition, owners[text], place)
                else:
                    owners[text] = partition
                    texts.append(text)
            lists.append((partition, tuple(texts)))
        return ListPartition(name, tuple(lists), settings) if is_right else None

    def _twice(self, value: object, partition: str, first: str, path: DocumentPath) -> None:
        where = f"in `{show_name(first)}` and in `{show_name(partition)}`"
        self._problems.add(
            self._document,
            path,
            "a value stands in a list twice" if first == partition else f"a value stands in two lists: {where}",
            found=show_value(value),
            expected="each value once",
        )

    def _value(self, value: object, column: FirstColumn, path: DocumentPath) -> str | None:
        """Canonical text; None with a problem noted if the column does not hold the value."""
        try:
            return canonical_text(value, column.type)
        except ValueError as error:
            self._problems.add(
                self._document,
                path,
                f"{place_name(path)} is no value of the column `{show_name(column.name)}`",
                found=show_value(value),
                expected=f"{error}: the column is of type {column.type}",
            )
            return None

    def _rise(self, texts: Sequence[str], kind: KeyType, paths: Sequence[DocumentPath]) -> bool:
        """Whether keys follow each other; a problem is noted at the first that does not."""
        for (earlier, later), path in zip(pairwise(texts), paths[1:], strict=True):
            if not kind.parse(earlier) < kind.parse(later):
                self._problems.add(
                    self._document,
                    path,
                    f"{place_name(path)} is not above the key before it",
                    found=f"{later} behind {earlier}",
                    expected="keys in rising order, each once",
                )
                return False
        return True
