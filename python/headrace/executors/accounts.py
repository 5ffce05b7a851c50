"""The accounts of one data flow: every row is either loaded, rejected or skipped, and every slice says so once."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

from headrace.errors import AccountsError, SourceError
from headrace.planning import DataFlowPlan, counted


def check_accounts(plan: DataFlowPlan, result: dict[str, Any], rows_inserted: int | None) -> None:
    """Raises AccountsError, naming the numbers, unless all of these hold:

    - every planned slice is reported exactly once, and nothing else is;
    - every stream is reported, and streams and the slices that they read count the same rows;
    - for each slice: lines = rows + skipped, rows = out + rejected;
    - the sink was handed the sum of out, but for slices that an earlier attempt has committed, and the destination took
      as many (`rows_inserted`; None: it does not count, or has told the sink);
    - the rows of all partitions, where the sink counts them, are those that it was handed;
    - as many rejects were kept as rows were rejected;
    - for each slice that was read: the values ignored in its columns are those that it counts in all.
    """
    problems = [*_slices(plan, result), *_streams(plan, result)]
    for item in result["slices"]:
        problems += _identities(item)
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
    problems += _equal("rows rejected in the slices", rejected, "rejects kept", result["rejects"]["count"])
    if problems:
        raise AccountsError(
            f"the accounts of {plan.task} do not balance; nothing was loaded",
            found="\n".join(problems[:_LISTED]) + (f"\nand {len(problems) - _LISTED} more" * (len(problems) > _LISTED)),
            hint="This is a defect of Headrace. Keep the run folder and report it.",
        )


def refuse_empty(plan: DataFlowPlan, result: dict[str, Any]) -> None:
    """Raises SourceError if the source had not one data row, rejected ones included, and does not allow that."""
    if plan.source.may_be_empty or any(int(item["rows"]) for item in result["slices"]):
        return
    files = [str(file["path"]) for file in plan.source.files]
    lines = sum(int(item["lines"]) for item in result["slices"])
    raise SourceError(
        "the source file has no data row; nothing was changed"
        if len(files) == 1
        else f"none of the {len(files)} source files has a data row; nothing was changed",
        at={"file": files[0]} if len(files) == 1 else {"folder": os.path.dirname(files[0])},
        found=f"{counted(lines, 'header or blank line')}",
        hint=f"Set `empty: allow` for source `{plan.source.name}` if this is right; `replace` then empties the table.",
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
    problems = [] if reported == expected else [f"streams {expected} were started, streams {reported} have reported"]
    by_stream = sum(int(item["rows"]) for item in result["streams"])
    by_slice = sum(int(item["rows"]) for item in result["slices"] if item["stream"] is not None)
    return problems + _equal("rows of the streams", by_stream, "rows of the slices", by_slice)


def _identities(item: dict[str, Any]) -> list[str]:
    number = item["number"]
    lines, skipped, rows = int(item["lines"]), int(item["skipped"]), int(item["rows"])
    out, rejected = int(item["out"]), int(item["rejected"])
    problems = []
    if lines != rows + skipped:
        problems.append(f"slice {number}: {lines} lines are not {rows} rows + {skipped} skipped")
    if rows != out + rejected:
        problems.append(f"slice {number}: {rows} rows are not {out} out + {rejected} rejected")
    ignored = sum(int(count) for counts in item["ignored"].values() for count in counts.values())
    if item["stream"] is not None and ignored != int(item["values_ignored"]):
        problems.append(f"slice {number}: {item['values_ignored']} values ignored are {ignored} in its columns")
    return problems


def _equal(left_name: str, left: int, right_name: str, right: int) -> list[str]:
    return [] if left == right else [f"{left_name}: {left}, {right_name}: {right}"]
