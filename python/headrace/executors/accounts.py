"""The accounts of one data flow: every row is either loaded, rejected or skipped, and every slice says so once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.errors import AccountsError, SourceError
from headrace.executors.joined import join_accounts
from headrace.executors.rows_left import left_by_each, left_out_in_front
from headrace.model import SIDES, FlowRows
from headrace.planning import DataFlowPlan, JoinPlan, LookupPlan, SourcePart, counted


def check_accounts(plan: DataFlowPlan, result: dict[str, Any], rows_inserted: int | None) -> None:
    """Raises AccountsError, naming the numbers, unless all of these hold:

    - every planned slice is reported exactly once, and nothing else is;
    - every stream is reported, and streams and the slices that they read count the same rows;
    - for each slice: lines = rows + skipped, rows = out + filtered + rejected; with a join rows = those that came to
      it + those rejected or left out before, and of these those that met none, and go no further, are not more than
      there are; all that comes out of it is a right row that has met a left one, or one of those that have met none and
      are kept, and is loaded, filtered or rejected behind it; all that comes out of an inner join comes to the
      next one, or is left out or rejected before;
    - for each slice that was read, and each transform: rows = matched + defaulted + filtered + rejected, and what all
      have filtered is what the slice has; what comes out of one goes into those that read it, and what comes out of the
      last one into the destination, but for rows that no partition takes, or that the table of one of several
      destinations cannot hold;
    - the sink was handed the sum of out, but for slices that an earlier attempt has committed, and the destination took
      as many (`rows_inserted`; None: it does not count, or has told the sink);
    - the rows of all partitions, where the sink counts them, are those that it was handed;
    - as many rejects were kept as rows were rejected, of several destinations by any of them;
    - for each slice that was read: the values ignored in its columns are those that it counts in all.
    """
    problems = [*_slices(plan, result), *_streams(plan, result)]
    for item in result["slices"]:
        problems += _identities(plan, item)
    problems += _join(plan, result)
    problems += _transforms(plan, result)
    rows_out = sum(int(item["out"]) for item in result["slices"] if not item["committed"])
    rejected = sum(int(item["rejected"]) for item in result["slices"])
    problems += _equal("rows out of the slices", rows_out, "rows handed to the destination", result["sink"]["rows"])
    if rows_inserted is not None:
        problems += _equal("rows out of the slices", rows_out, "rows the destination took", rows_inserted)
    confirmed = result["sink"].get("confirmed")
    if confirmed is not None:
        problems += _equal("rows handed to the destination", result["sink"]["rows"], "rows it confirmed", confirmed)
    by_place = result["sink"].get("rows_by_place")
    if by_place is not None:
        problems += _equal("rows handed to the destination", result["sink"]["rows"], "rows by partition", sum(by_place))
    # Of several destinations the slices of one way say only what that way has refused.
    rejected = int(result.get("rows_refused", rejected))
    problems += _equal("rows rejected in the slices", rejected, "rejects kept", result["rejects"]["count"])
    if problems:
        raise AccountsError(
            f"the accounts of {plan.task} do not balance; nothing was loaded",
            found="\n".join(problems[:_LISTED]) + (f"\nand {len(problems) - _LISTED} more" * (len(problems) > _LISTED)),
            hint="This is a defect of Headrace. Keep the run folder and report it.",
        )


def refuse_empty(plan: DataFlowPlan, result: dict[str, Any]) -> None:
    """Raises SourceError if a source had not one data row, rejected ones included, and does not allow that."""
    source = plan.source
    for number, own in enumerate(source.parts or (SourcePart(source.name, 0, source.may_be_empty),)):
        if number in plan.source_numbers:
            _refuse_empty(plan, result, own, number)


def _refuse_empty(plan: DataFlowPlan, result: dict[str, Any], source: SourcePart, place: int) -> None:
    slices = [item for item in result["slices"] if plan.source_number(int(item["file"])) == place]
    if source.may_be_empty or any(int(item["rows"]) for item in slices):
        return
    files = [str(file["path"]) for number, file in enumerate(plan.source.files) if plan.source_number(number) == place]
    lines = sum(int(item["lines"]) for item in slices)
    raise SourceError(
        "the source file has no data row; nothing was changed"
        if len(files) == 1
        else f"none of the {len(files)} source files has a data row; nothing was changed",
        at={"file": files[0]} if len(files) == 1 else {"folder": os.path.dirname(files[0])},
        found=f"{counted(lines, 'header or blank line')}",
        hint=f"Set `empty: allow` for source `{source.name}` if this is right"
        + ("." if plan.meeting else "; `replace` then empties the table."),
    )


_LISTED = 10


def _slices(plan: DataFlowPlan, result: dict[str, Any]) -> list[str]:
    planned = {int(item["number"]) for item in plan.source.slices}
    reported = Counter(int(item["number"]) for item in result["slices"])
    problems = []
    missing = sorted(planned - reported.keys())
    if missing:
        problems.append(f"{len(missing)} of {len(planned)} slices are not reported, the first is {missing[0]}")
    unknown = sorted(reported.keys() - planned)
    if unknown:
        problems.append(f"slice {unknown[0]} is reported, but not in the plan")
    problems += [f"slice {number} is reported {count} times" for number, count in sorted(reported.items()) if count > 1]
    return problems


def _streams(plan: DataFlowPlan, result: dict[str, Any]) -> list[str]:
    reported = sorted(int(item["number"]) for item in result["streams"])
    expected = list(range(1, plan.streams + 1))
    if result.get("was_begun", plan.keeps_accounts and bool(plan.committed)):
        # Only the core knows which of the slices that are committed it has to read again; of several sources one may
        # be committed as a whole by the way to another destination.
        expected = expected[: max(1, len(reported))]
    problems = [] if reported == expected else [f"streams {expected} were started, streams {reported} have reported"]
    by_stream = sum(int(item["rows"]) for item in result["streams"])
    by_slice = sum(int(item["rows"]) for item in result["slices"] if item["stream"] is not None)
    # One of several destinations does not get rows of all slices that are replayed.
    by_slice = int(result.get("rows_of_slices", by_slice))
    return problems + _equal("rows of the streams", by_stream, "rows of the slices", by_slice)


def _identities(plan: DataFlowPlan, item: dict[str, Any]) -> list[str]:
    number = item["number"]
    lines, skipped, rows = int(item["lines"]), int(item["skipped"]), int(item["rows"])
    out, rejected, filtered = int(item["out"]), int(item["rejected"]), int(item["filtered"])
    problems = []
    if lines != rows + skipped:
        problems.append(f"slice {number}: {lines} lines are not {rows} rows + {skipped} skipped")
    if plan.join is not None:
        problems += _joined_slice(plan, item)
    elif rows != out + filtered + rejected:
        others = f"{filtered} filtered + {rejected} rejected" if filtered else f"{rejected} rejected"
        problems.append(f"slice {number}: {rows} rows are not {out} out + {others}")
    ignored = sum(int(count) for counts in item["ignored"].values() for count in counts.values())
    if item["stream"] is not None and ignored != int(item["values_ignored"]):
        problems.append(f"slice {number}: {item['values_ignored']} values ignored are {ignored} in its columns")
    return problems


def _joined_slice(plan: DataFlowPlan, item: dict[str, Any]) -> list[str]:
    join = item.get("join")
    if join is None or plan.join is None:
        return [f"slice {item['number']}: nothing is told of its join"]
    rows = int(join["rows"])
    name, rejected = f"slice {item['number']}", int(item["rejected"]) - int(join["rejected"])
    number = plan.source_number(int(item["file"]))
    problems, left_out = [], left_out_in_front(plan, item, number)
    if int(item["rows"]) != rows + rejected + left_out:
        before = f"{rejected} rejected before it" + (f" + {left_out} left out in front of it" if left_out else "")
        problems.append(f"{name}: {item['rows']} rows are not {rows} rows of the join + {before}")
    return [*problems, *_came(plan.join, name, number, join)]


def _came(joins: JoinPlan, name: str, number: int, told: Mapping[str, Any]) -> list[str]:
    """Of rows of a source or an inner join that have come to the next join. `name`: for the problem."""
    rows, unmatched, filtered, null_keys = (
        int(told[count]) for count in ("rows", "unmatched", "filtered", "null_keys")
    )
    if null_keys <= unmatched <= rows and filtered == (0 if joins.keeps(number) else unmatched):
        return []
    return [f"{name}: of {rows} rows {unmatched} met none, {null_keys} without a key, {filtered} left out"]


def _join(plan: DataFlowPlan, result: dict[str, Any]) -> list[str]:
    account = join_accounts(plan, result)
    if account is None or plan.join is None:
        return []
    out, rejected = int(account["rows_out"]), sum(int(account[side]["rejected_behind"]) for side in SIDES)
    behind = [item["transforms"] for item in result["slices"] if item.get("transforms")]
    units = sorted(_units(plan, result).items())
    problems = [problem for unit, slices in units for problem in _pair(plan, plan.join, unit, slices)]
    first = sum(own.front_of is not None for own in plan.transforms)
    if len(plan.transforms) > first:
        came = sum(int(own[first]["rows"]) for own in behind)
        problems += _equal("rows out of the join", out, "rows behind it", came)
    came = sum(int(item["out"]) + int(item["filtered"]) for item in result["slices"])
    return problems + _equal("rows out of the join and not rejected", out - rejected, "rows out of the slices", came)


def _units(plan: DataFlowPlan, result: dict[str, Any]) -> dict[int, list[dict[str, Any]]]:
    """The slices of each pair of files."""
    units: dict[int, list[dict[str, Any]]] = {}
    for item in result["slices"]:
        if plan.source_number(int(item["file"])) in plan.source_numbers:
            units.setdefault(plan.source.unit_of(item), []).append(item)
    return units


def _pair(plan: DataFlowPlan, joins: JoinPlan, unit: int, slices: Sequence[dict[str, Any]]) -> list[str]:
    """A right row meets one left row, and a left row any number of right ones; what comes out of an inner join comes to
    the next one, is left out in front of it, or refused.
    """
    inner: Sequence[Mapping[str, Any]] = next((item["inner"] for item in slices if item.get("inner")), [])
    if len(inner) != len(joins.join.inner):
        return [f"{joins.pair_word} {unit + 1}: {len(inner)} of {len(joins.join.inner)} inner joins are reported"]
    told = dict(enumerate(inner, len(joins.sources)))
    told |= {plan.source_number(int(item["file"])): item["join"] for item in slices if item.get("join")}
    if not told.keys() >= set(joins.fronts):
        return []  # that something is not told is a problem of its own
    problems = []
    for join in joins.joins:
        name, sides = f"{joins.pair_word} {unit + 1}, join {join.name}", [told[own] for own in joins.sides(join)]
        left, right = (int(own["rows"]) - int(own["unmatched"]) for own in sides)
        if left > right or (left == 0) != (right == 0):
            problems.append(f"{name}: {left} left rows have met {right} right ones")
        if join is joins.join:
            continue
        number = joins.names.index(join.name)
        own, left_out = told[number], sum(left_out_in_front(plan, item, number) for item in slices)
        kept = sum(int(side["unmatched"]) - int(side["filtered"]) for side in sides)
        came = int(own["rows"]) + left_out + int(own["rejected"])
        problems += _came(joins, name, number, own)
        problems += _equal(f"{name}: rows out of it", right + kept, "rows come on, left out or rejected", came)
    return problems


def _transforms(plan: DataFlowPlan, result: dict[str, Any]) -> list[str]:
    problems: list[str] = []
    outside = refused_at_end = 0
    for item in result["slices"]:
        counts = item.get("transforms", [])
        if not counts and (item["stream"] is None or not plan.transforms):
            continue  # nothing is known of it, or there is nothing on the way
        if plan.join is not None and not counts:
            continue  # those of a pair are told by its first slice
        if len(counts) != len(plan.transforms):
            problems.append(f"slice {item['number']}: {len(counts)} of {len(plan.transforms)} transforms are reported")
            continue
        left = left_by_each(plan.transforms, counts)
        if plan.union is not None and (taken := _taken(plan, item)) in left:
            left[FlowRows(plan.union.name)] = left[taken]
        problems += _passed(plan, item, left)
        # What comes straight from a join or union, is known there.
        if counts and plan.end in left:
            outside += left[plan.end] - int(item["out"])
            refused_at_end += int(item.get("refused_at_end", 0))
    # The table may hold less than the rows have, or have no partition for one.
    problems += _equal(
        "rows behind the transforms and not out", outside, "rows refused at the end of the way", refused_at_end
    )
    return problems


def _taken(plan: DataFlowPlan, item: dict[str, Any]) -> FlowRows | None:
    """The rows of a slice that come together with others behind transforms."""
    inputs = () if plan.together is None else plan.together.inputs
    return inputs[plan.source_number(int(item["file"]))] if inputs else None


def _passed(plan: DataFlowPlan, item: dict[str, Any], left: Mapping[FlowRows, int]) -> list[str]:
    """`left`: how many rows of a slice have gone on by each output of the transforms on the way."""
    problems = []
    counts, read = item["transforms"], plan.rows_read
    elsewhere = sum(count for rows, count in left.items() if rows not in read)
    filtered_in_all = sum(int(count["filtered"]) for count in counts) + elsewhere
    if plan.join is not None:  # what is left out in front of it, is told of its sides
        filtered_in_all -= left_out_in_front(plan, item)
    if filtered_in_all != int(item["filtered"]):
        found = f"{item['filtered']} rows filtered are {filtered_in_all} in its transforms"
        problems.append(f"slice {item['number']}: {found}")
    for own, count in zip(plan.transforms, counts, strict=True):
        rows, matched, defaulted, rejected, filtered = (
            int(count[member]) for member in ("rows", "matched", "defaulted", "rejected", "filtered")
        )
        name = f"slice {item['number']}, transform {own.name}"
        outputs = sum(map(int, count.get("outputs", [])))
        if rows != matched + defaulted + filtered + rejected + outputs:
            others = f"{defaulted} with defaults" if isinstance(own, LookupPlan) else f"{filtered} filtered"
            others += f" + {outputs} of other outputs" if outputs else ""
            problems.append(f"{name}: {rows} rows are not {matched} matched + {others} + {rejected} rejected")
        if int(count["null_keys"]) > defaulted + rejected + outputs:
            problems.append(
                f"{name}: {count['null_keys']} rows without a key are more than {defaulted} with defaults and "
                f"{rejected} rejected"
            )
        arrived = [left.get(rows) for rows in own.inputs]
        if None not in arrived and rows != (came := sum(filter(None, arrived))):
            problems.append(f"{name}: {rows} rows came of {came} from the transform before")
    return problems


def _equal(left_name: str, left: int, right_name: str, right: int) -> list[str]:
    return [] if left == right else [f"{left_name}: {left}, {right_name}: {right}"]
