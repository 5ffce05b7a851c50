"""The destination's side: what its sessions waited for, how its log and its files grew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from headrace.report.curves import Chart, Series, joined, lines, stacked
from headrace.report.markup import Markup, element, join
from headrace.report.plot import series_colour
from headrace.report.rates import edges_of, middles
from headrace.report.run_files import RunFiles
from headrace.report.sections import Section
from headrace.report.side_measures import DestinationMeasures
from headrace.report.wording import WAIT_NAMES, percent, rate, size
from headrace.units import MEGABYTE, plural

_MOST_WAITS: Final = 7
_CELLS: Final = 300
_IDLE: Final = "idle"
_SIZE_NAMES: Final = {"file_bytes": "database", "wal_bytes": "log", "spill_bytes": "put aside on disk"}


def section(run: RunFiles) -> Section | None:
    """What is known of all destinations."""
    own = list(run.measures.destinations.values())
    if not own:
        return None
    denied = dict.fromkeys(reason for item in own for reason in item.denied)
    parts: list[Markup] = []
    if denied:
        parts.append(element("p", f"Not told: {'; '.join(denied)}.", class_="lead"))
    places = dict.fromkeys(item.connection for item in own)
    for number, connection in enumerate(places):
        there = [item for item in own if item.connection == connection]
        parts += _charts(run, there, _Place(connection, number) if len(places) > 1 else None)
    return Section("destination", "Destination", join(parts)) if parts else None


class _Place(NamedTuple):
    """One of several connections. Each has its charts: two of the same server would count its log twice, and sizes of
    two files are no curve.
    """

    connection: str
    number: int


def _charts(run: RunFiles, own: Sequence[DestinationMeasures], place: _Place | None) -> list[Markup]:
    servers = [item for item in own if item.type != "duckdb"]
    charts = [_waits(run, servers, place), _log(run, servers, place)] if servers else []
    charts.append(_files(run, [item for item in own if item.type == "duckdb"], place))
    return [chart for chart in charts if chart is not None]


def _named(name: str, title: str, place: _Place | None) -> tuple[str, str]:
    """The name and the title of a chart."""
    return (name, title) if place is None else (f"{name}-{place.number}", f"{title}: {place.connection}")


def _waits(run: RunFiles, servers: Sequence[DestinationMeasures], place: _Place | None) -> Markup | None:
    total: Counter[str] = Counter()
    for item in servers:
        total.update(item.waits())
    looks = sum(total.values())
    if not looks:
        return None
    order = [name for name, _ in total.most_common()]
    shown = [name for name in order if name != _IDLE][:_MOST_WAITS]
    edges = edges_of(run.timeline.seconds, _CELLS)
    cells = [Counter[str]() for _ in edges[1:]]
    for item in servers:
        offset = run.timeline.offset(item.attempt)
        for time, found in item.found:
            cell = run.timeline.share(offset + time) * len(cells)
            cells[min(len(cells) - 1, int(cell))].update(found)
    known = _fill_gaps(cells)
    moments, cells = middles(edges)[known], cells[known]
    series = [
        Series(
            WAIT_NAMES.get(name, name),
            series_colour(number),
            [cell[name] / (sum(cell.values()) or 1) for cell in cells],
            percent(total[name] / looks),
        )
        for number, name in enumerate(shown)
    ]
    rest = [name for name in order if name not in shown and name != _IDLE]
    if rest:
        series.append(
            Series(
                plural(len(rest), "other wait"),
                series_colour(_MOST_WAITS),
                [sum(cell[name] for name in rest) / (sum(cell.values()) or 1) for cell in cells],
                percent(sum(total[name] for name in rest) / looks),
            )
        )
    chart = Chart(
        *_named("destination-waits", "What the sessions of the server were found at", place),
        f"Shares of {looks:,} looks at the sessions that take rows, stacked; the rest was idle.",
        percent,
        lead=f"{looks:,} looks at the sessions that take rows, about 5 a second at each.",
        top=1.0,
    )
    return stacked(chart, run.timeline, moments, series)


def _fill_gaps(cells: list[Counter[str]]) -> slice:
    """A cell between two lines without a look of its own has those of the one before. Returns where some are known."""
    known = [number for number, cell in enumerate(cells) if cell]
    for before, behind in pairwise(known):
        if behind - before <= 1 + len(cells) // max(1, len(known)):
            for number in range(before + 1, behind):
                cells[number] = cells[before]
    return slice(known[0], known[-1] + 1)


def _log(run: RunFiles, servers: Sequence[DestinationMeasures], place: _Place | None) -> Markup | None:
    edges = edges_of(run.timeline.seconds, _CELLS)
    grown = [0.0] * (len(edges) - 1)
    for item in servers:
        curve = item.server("wal_bytes").moved(run.timeline.offset(item.attempt))
        steps = curve.growth(edges)
        grown = [known + step for known, step in zip(grown, steps, strict=True)]
    if not any(grown):
        return None
    timed = round(sum(item.server("checkpoints_timed").total for item in servers))
    requested = round(sum(item.server("checkpoints_requested").total for item in servers))
    checkpoints = f"{plural(requested, 'checkpoint')} because the log ran full, {timed:,} by time."
    seconds = edges[1] - edges[0]
    chart = Chart(
        *_named("destination-log", "Write-ahead log", place),
        f"Bytes of the write-ahead log written per second. {checkpoints}",
        rate,
        lead=f"{size(sum(grown))} in all. Checkpoints of the server meanwhile: {checkpoints}",
        height=110,
    )
    values = [step / seconds / MEGABYTE for step in grown]
    return stacked(chart, run.timeline, middles(edges), [Series("log written", series_colour(1), values)])


def _files(run: RunFiles, engines: Sequence[DestinationMeasures], place: _Place | None) -> Markup | None:
    series = []
    for number, (name, title) in enumerate(_SIZE_NAMES.items()):
        levels = [
            (run.timeline.place(item.attempt, time), value) for item in engines for time, value in item.sizes(name)
        ]
        levels.sort()
        if any(value for _, value in levels):
            moments, values = zip(*levels, strict=True)
            series.append(Series(title, series_colour(number), values, size(max(values)), moments))
    if not series:
        return None
    chart = Chart(
        *_named("destination-files", "Files of DuckDB", place),
        "Sizes of the database file, its log, and what the engine has put aside on disk.",
        size,
        height=130,
    )
    return joined([lines(chart, run.timeline, series)])
