"""A data flow with several destinations: the plans of its ways, executed in one pass over the source.

For each destination the flow of its way is a plain flow. What the core reports of all of them is taken apart here, so
that accounts, ledgers and summaries look at one way at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from headrace.errors import InternalError
from headrace.model import FlowRows
from headrace.planning.front_ways import without_meeting
from headrace.planning.plan import DataFlowPlan
from headrace.planning.routing import routing_spec
from headrace.planning.transforms import TransformPlan, core_rows, place_of_front

# Of a destination behind the first one: those of all are told with that.
NO_REJECTS: Final[Mapping[str, Any]] = {
    "count": 0, "by_rule": {}, "by_column": [], "first": [], "files": [], "cut": 0
}  # fmt: skip

# What is read, as summaries and as the core call it.
_READ: Final = (("bytes_read", "bytes"), ("lines", "lines"), ("rows_skipped", "skipped"), ("rows_read", "rows"))


@dataclass(frozen=True)
class SharedPlan:
    """`ways`: plans of one source, in the order of the package, of equal streams; of a replay each has the slices whose
    rows its table lacks. `whole`: the plan of the first way with the slices and the transforms of all, each
    behind what it reads; its lookups, queries and memory are those of the flow.
    `is_told`: rejects, and what else is told once of the flow, are told with it; else they were, when ways to another
    place had become complete.
    """

    ways: tuple[DataFlowPlan, ...]
    whole: DataFlowPlan
    is_told: bool = True

    def core_spec(self, rejects_folder: str, sinks: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The spec of `core.Flow`. `sinks` are those of the target, in the order of the ways."""
        first, *others = self.ways
        spec = self.whole.flow_spec(rejects_folder, sinks[0])
        # A reject says which tables lack its row: replays send it there alone.
        told = {"destination": _name(first), "rejects": {**spec["rejects"], "tell_destinations": True}}
        if not others:
            return {**spec, **told, **({} if first.front is None else self._end(first))}
        return {
            **{name: value for name, value in spec.items() if name not in ("input", "fit", "routing")},
            "name": first.flow,
            **told,
            "source": {**spec["source"], **self._left_out(first)},
            **self._end(first),
            "others": [
                {
                    "name": _name(way),
                    **self._end(way),
                    "sink": sink,
                    "committed": {str(number): known.to_dict() for number, known in sorted(way.committed.items())},
                    **self._left_out(way),
                }
                for way, sink in zip(others, sinks[1:], strict=True)
            ],
        }

    def _left_out(self, way: DataFlowPlan) -> dict[str, list[int]]:
        own = way.source.slice_numbers
        left_out = sorted(self.whole.source.slice_numbers - own)
        return {"left_out": left_out} if left_out else {}

    def result_of(self, number: int, result: Mapping[str, Any]) -> dict[str, Any]:
        """What the core says of a flow, as it would say it of one way alone. The rejects of all ways are told with
        the first one.
        """
        if not result.get("destinations"):
            return dict(result)
        way, places = self.ways[number], self._places()
        own = [places[plan.name] for plan in way.transforms]
        has = way.source.slice_numbers
        slices = [self._slice(item, number, own) for item in result["slices"] if int(item["number"]) in has]
        busy = result.get("transforms", [])
        return {
            **result,
            "slices": slices,
            **result["destinations"][number],
            "rejects": result["rejects"] if number == 0 else NO_REJECTS,
            # Those of all ways are kept together: a row that several have refused is one of them.
            "rows_of_slices": sum(int(item["rows"]) for item in result["slices"] if item["stream"] is not None),
            "rows_refused": 0 if number else sum(int(item["rejected"]) for item in result["slices"]),
            "transforms": [busy[place] for place in own if place < len(busy)],
            "shared": self._sums(result) if number == 0 else None,
            "tells_files": self._tells_files(number),
            "was_begun": any(way.committed for way in self.ways),
        }

    def told(self, number: int, result: Mapping[str, Any]) -> dict[str, Any]:
        """The same once the accounts are checked, without what was told before."""
        own = self.result_of(number, result)
        elsewhere = {"rejects": NO_REJECTS, "shared": None, "tells_files": False, "goes_on": number == 0}
        return own if self.is_told else {**own, **elsewhere}

    def _tells_files(self, number: int) -> bool:
        """Whether what was seen of files is told with a way: with the first one, and of sources apart with the first
        one of each.
        """
        sources = [way.front if way.is_apart else None for way in self.ways]
        return sources[number] not in sources[:number]

    def _slice(self, item: Mapping[str, Any], number: int, places: Sequence[int]) -> dict[str, Any]:
        counts = item.get("transforms", [])
        own = {name: value for name, value in item.items() if name != "destinations"}
        way = item["destinations"][number]
        if own.get("join"):
            own["join"] = {**own["join"], "rejected": int(way["rejected"]) - self._rejected_before_join(item)}
        return {**own, **way, "transforms": [counts[place] for place in places if counts]}

    def _rejected_before_join(self, item: Mapping[str, Any]) -> int:
        """Of a slice of a side, on the way of all rows that have come out of it."""
        if not self._has_front_ways:
            # Whatever else is a reject, is one before the join, and of all ways.
            return int(item["rejected"]) - int(item["join"]["rejected"])
        side, counts = self.whole.source_number(int(item["file"])), item.get("transforms", [])
        passed = {plan.name for way in self.ways if way.front is None for plan in way.transforms}
        own = [pair for pair in zip(self.whole.transforms, counts, strict=False) if pair[0].front_of == side]
        # The parser has refused what it has not given to the first one that reads the source itself.
        first = [int(count["rows"]) for plan, count in own if plan.inputs[0].name == self._source_name(side)]
        given = first[0] if first else int(item["join"]["rows"])
        return int(item["rows"]) - given + sum(int(count["rejected"]) for plan, count in own if plan.name in passed)

    def _source_name(self, number: int) -> str:
        return "" if self.whole.together is None else self.whole.together.source_names[number]

    def _sums(self, result: Mapping[str, Any]) -> dict[str, int]:
        """What is told once of a flow, not of each way: rejects, and rows that were left out on some way or discarded.
        They may stand in the table of another destination, and count twice if two queries leave them out.
        """
        read = {way.end for way in self.ways} | self.whole.rows_read
        filtered = in_front = 0
        for item in result["slices"]:
            for plan, counts in zip(self.whole.transforms, item.get("transforms", []), strict=False):
                if self.whole.join is not None and plan.front_of in self.whole.join.fronts:
                    in_front += _left_out(plan, counts, read)  # of a join that is told of its sides
                else:
                    filtered += _left_out(plan, counts, read)
        return {
            "rows_rejected": int(result["rejects"]["count"]),
            "rows_filtered": filtered,
            # What a side has in front of its join may go elsewhere.
            **({"filtered_in_front": in_front} if self.whole.join is not None and self._has_front_ways else {}),
            **self._read(result),
            **self._rejected_by_side(result),
        }

    def _read(self, result: Mapping[str, Any]) -> dict[str, int]:
        """Each way of a replay has read the rows that its table lacks, and others may be those of one source: of all of
        them what was read at all.
        """
        if self.whole.replay is None and not self._has_front_ways:
            return {}
        return {told: sum(int(item[own]) for item in result["slices"]) for told, own in _READ}

    def _rejected_by_side(self, result: Mapping[str, Any]) -> dict[str, int]:
        """Of joins: the rejects of each side that is a source, and those of them that have come to its join."""
        join = self.whole.join
        if join is None:
            return {}
        sums: dict[str, int] = {}
        for number, place in enumerate(join.places):
            own = [item for item in result["slices"] if join.source_number(int(item["file"])) == number]
            sums[f"{place}_rejected"] = sum(int(item["rejected"]) for item in own)
            sums[f"{place}_rejected_behind"] = sum(int(item["join"]["rejected"]) for item in own if item.get("join"))
        return sums

    @property
    def _has_front_ways(self) -> bool:
        return any(way.front is not None for way in self.ways)

    def _places(self) -> dict[str, int]:
        return {plan.name: place for place, plan in enumerate(self.whole.transforms)}

    def _end(self, way: DataFlowPlan) -> dict[str, Any]:
        routing = None if way.partitioning is None else routing_spec(way.partitioning)
        fit = [column.to_core() for column in way.fit]
        return {
            "input": core_rows(way.end, self.whole.transforms),
            **way.input_source,
            **({"fit": fit} if fit else {}),
            **({} if routing is None else {"routing": routing}),
        }


def branches_of(
    ways: Sequence[DataFlowPlan],
) -> tuple[tuple[DataFlowPlan, ...], tuple[tuple[DataFlowPlan, ...], ...]]:
    """The ways that get rows of the pass over the source itself, and those behind the same queries over all rows."""
    behind: dict[tuple[str, ...], list[DataFlowPlan]] = {}
    for way in ways:
        behind.setdefault(way.gather.names if way.gather else (), []).append(way)
    direct = behind.pop((), [])
    return tuple(direct), tuple(map(tuple, behind.values()))


def _left_out(plan: TransformPlan, counts: Mapping[str, Any], read: Collection[FlowRows]) -> int:
    """Rows that a transform leaves out, or that go by outputs that are not `read`."""
    outputs = counts.get("outputs", [])
    # Of what comes out by the first output somebody has counted it all, unless nobody reads it.
    others = int(counts["matched"]) + int(counts["defaulted"])
    return int(counts["filtered"]) + sum(
        int(count)
        for output, count in enumerate([others, *outputs] if outputs else [])
        if FlowRows(plan.name, plan.outputs[output]) not in read
    )


def _name(way: DataFlowPlan) -> str:
    return way.task.removeprefix(f"{way.flow}/")


def shared_plan(ways: Sequence[DataFlowPlan], *, is_told: bool = True) -> SharedPlan:
    """The plan of ways together. `is_told`: see `SharedPlan`. Raises InternalError if they do not read the same."""
    ways = without_meeting(ways)
    first = ways[0]
    for way in ways:
        # What rows of a replay belong to, differs from way to way, and those of one source are a part of all.
        is_whole = way.replay is None and way.front == first.front
        slices = first.source.slices if is_whole else way.source.slices
        if (way.source.files, way.source.slices) != (first.source.files, slices) or way.layouts != first.layouts:
            raise InternalError("the ways of one data flow do not read the same rows", found=way.task)
    known: dict[str, TransformPlan] = {}
    for way in ways:
        for plan in way.transforms:
            known.setdefault(plan.name, plan)
    transforms = sorted(known.values(), key=place_of_front)
    every = {int(item["number"]): item for way in ways for item in way.source.slices}
    source = replace(first.source, slices=[every[number] for number in sorted(every)])
    # What is read again for what an earlier attempt has committed, the core decides by all of them. Of several sources
    # some may have nothing left, and some no way at all: the streams were planned with the slices of these, too.
    narrow = min([own for own in ways if own.slices_to_load] or ways, key=lambda way: way.streams)
    is_left = first.front is not None or (first.together is not None and first.together.has_apart)
    streams = max(1, min(narrow.streams, source.groups)) if is_left else narrow.streams
    equal = tuple(way.with_streams(streams) for way in ways)
    # Each was planned with what all of them need; the fewest streams have the fewest blocks.
    memory = replace(narrow.memory, engine_bytes=min(way.memory.engine_bytes for way in ways))
    whole = replace(equal[0], source=source, transforms=tuple(transforms), memory=memory, front=None)
    # All rejects are in files already, under the name of a table that is complete.
    return SharedPlan(equal, whole if is_told else replace(whole, keep_rejects="examples"), is_told)
