"""limits.md: what can limit a load, and what helps."""

from __future__ import annotations

from headrace.diagnose import LIMITS

_HEAD = """# Limits

<!-- Written by docs/reference/generate.py from the program. Do not edit; run `make docs`. -->

What a verdict may say: while a data flow loads (the line below the table, events `limit` and `slow_streams`), about
each data flow (`tables[].limit` of `summary.json`) and about the run (`limit`). How it is found out:
[what limits a load](../explanation/limits.md). From which numbers: [metrics](../spec/metrics.md).

| limit | what it means | what helps most often |
|---|---|---|
"""

_TAIL = """
Members of a verdict: `limit`; `sentence`, why, with the numbers behind it; `evidence`, these numbers and
others, shares between 0 and 1 where the name ends in no unit; `next_limit` and `next_megabytes_per_second`, what would
be the limit if this one were none, and from where on, in MB of source text per second, or null; `remedy`; `connection`,
where the rows go to several and the limit is a part of one of them. About a data flow that has ended also
`seconds_by_limit`, for how long each limit was the limit; `streams`, the verdict about each alone; `slow`, streams that
ended much later than the others, with their file and what held them up. About a run it is the verdict of its longest
flow with the limit that had most of the time, and also `flow_seconds_by_limit`: seconds of all data flows together, by
what limited each. A load of less than half a second has no verdict: null."""


def page() -> str:
    """The whole page."""
    rows = [f"| `{limit.name}` | {limit.meaning} | {limit.remedy} |" for limit in LIMITS.values()]
    return _HEAD + "\n".join(rows) + "\n" + _TAIL + "\n"
