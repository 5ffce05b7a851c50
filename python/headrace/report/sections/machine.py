"""The machine that ran the load: CPU, memory, disk, network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress, pairwise
from operator import methodcaller
from typing import Final

from headrace.report.curves import Chart, Series, joined, lines, stacked
from headrace.report.markup import Markup, join
from headrace.report.palette import CPU, fill
from headrace.report.plot import series_colour
from headrace.report.rates import edges_of, middles
from headrace.report.run_files import RunFiles
from headrace.report.sections import Section
from headrace.report.side_measures import CPU_STATES, MachineMeasures
from headrace.report.tracks import Curve
from headrace.report.wording import duration, percent, rate, size
from headrace.units import MEGABYTE

_CELLS: Final = 600
_LOOPBACK: Final = "lo"
_CPU_NAMES: Final = {"user": "programs", "system": "system", "iowait": "idle, waiting for disks", "steal": "stolen"}
_LEAST_RATE: Final = 0.1
_PAIR_HEIGHT: Final = 130
_MEMORY: Final = "Of this process, and of the whole machine."


def section(run: RunFiles) -> Section | None:
    """All charts of the machine."""
    if not run.measures.machines:
        return None
    pairs = [chart for chart in (_memory(run), _disks(run), _networks(run)) if chart is not None]
    parts = [chart for chart in (_cpu(run),) if chart is not None]
    if pairs:
        parts.append(joined(pairs))
    return Section("machine", "Machine", join(parts)) if parts else None


def _each(run: RunFiles, curve: Callable[[MachineMeasures], Curve]) -> list[Curve]:
    return [curve(own).moved(run.timeline.offset(number)) for number, own in run.measures.machines.items()]


def _growth(curves: Sequence[Curve], edges: Sequence[float]) -> list[float]:
    if not curves:
        return [0.0] * (len(edges) - 1)
    return [sum(step) for step in zip(*(curve.growth(edges) for curve in curves), strict=True)]


def _known(run: RunFiles, edges: Sequence[float]) -> list[bool]:
    """Between which edges something was measured: not before the first line of an attempt, nor behind its last."""
    spans = [(curve.begin or 0.0, curve.end or 0.0) for curve in _each(run, methodcaller("cpu", "user"))]
    return [any(begin <= first and last <= end for begin, end in spans) for first, last in pairwise(edges)]


def _cpu(run: RunFiles) -> Markup | None:
    edges = edges_of(run.timeline.seconds, _CELLS)
    known = _known(run, edges)
    grown = {
        state: list(compress(_growth(_each(run, methodcaller("cpu", state)), edges), known)) for state in CPU_STATES
    }
    whole = [sum(step) for step in zip(*grown.values(), strict=True)]
    if not any(whole):
        return None
    seconds = sum(whole)
    series = [
        Series(
            _CPU_NAMES[state],
            fill("cpu", state),
            [value / total if total else 0.0 for value, total in zip(grown[state], whole, strict=True)],
            percent(sum(grown[state]) / seconds),
        )
        for state in CPU
        if sum(grown[state]) > 0
    ]
    cpus = next((own.cpus for own in run.measures.machines.values() if own.cpus), None)
    process = sum(curve.total for curve in _each(run, lambda own: own.process("cpu_seconds")))
    queued = sum(curve.total for curve in _each(run, lambda own: own.process("run_queue_seconds")))
    throttled = sum(curve.total for curve in _each(run, lambda own: own.process("throttled_seconds")))
    lead = [f"All {cpus:g} CPUs that the process may use." if cpus else "All CPUs that the process may use."]
    lead.append(f"Headrace took {duration(process)} of CPU time and waited {duration(queued)} for a CPU.")
    if throttled > 0:
        lead.append(f"A quota stopped it for {duration(throttled)}.")
    chart = Chart(
        "machine-cpu",
        "CPU",
        "Shares of all CPUs by what they were at, stacked; the rest was idle.",
        percent,
        lead=" ".join(lead),
        top=1.0,
    )
    return stacked(chart, run.timeline, list(compress(middles(edges), known)), series)


def _memory(run: RunFiles) -> Markup | None:
    own, used = [], []
    for number, machine in run.measures.machines.items():
        place = run.timeline.offset(number)
        own += [(place + time, value) for time, value in machine.levels("process", "resident_bytes")]
        total = dict(machine.levels("memory", "total_bytes"))
        used += [
            (place + time, total[time] - value)
            for time, value in machine.levels("memory", "available_bytes")
            if time in total
        ]
    series = []
    for number, (name, levels) in enumerate((("Headrace", own), ("all of the machine", used))):
        if levels:
            moments, values = zip(*levels, strict=True)
            series.append(Series(name, series_colour(number), values, size(max(values)), moments))
    if not series:
        return None
    chart = Chart("machine-memory", "Memory", "Memory in use over time.", size, lead=_MEMORY, height=_PAIR_HEIGHT)
    return lines(chart, run.timeline, series)


def _disks(run: RunFiles) -> Markup | None:
    named = {"read": "read_bytes", "written": "written_bytes"}
    curves = {
        title: [
            curve.moved(run.timeline.offset(number))
            for number, own in run.measures.machines.items()
            for curve in own.disks(counter).values()
        ]
        for title, counter in named.items()
    }
    names = dict.fromkeys(name for own in run.measures.machines.values() for name in own.disks("read_bytes"))
    return _transfers(run, "machine-disk", "Disk", curves, f"All disks together: {', '.join(names)}.")


def _networks(run: RunFiles) -> Markup | None:
    curves: dict[str, list[Curve]] = {"received": [], "sent": [], "inside of the machine": []}
    names: dict[str, None] = {}
    for number, own in run.measures.machines.items():
        offset = run.timeline.offset(number)
        for title, counter in (("received", "received_bytes"), ("sent", "sent_bytes")):
            for name, curve in own.networks(counter).items():
                if name != _LOOPBACK:
                    names[name] = None
                    curves[title].append(curve.moved(offset))
                elif title == "sent":
                    curves["inside of the machine"].append(curve.moved(offset))
    return _transfers(run, "machine-network", "Network", curves, f"All interfaces together: {', '.join(names)}.")


def _transfers(run: RunFiles, name: str, title: str, curves: Mapping[str, Sequence[Curve]], lead: str) -> Markup | None:
    edges = edges_of(run.timeline.seconds, _CELLS)
    known = _known(run, edges)
    moments = list(compress(middles(edges), known))
    seconds = edges[1] - edges[0]
    series = []
    for number, (own, parts) in enumerate(curves.items()):
        values = [step / seconds / MEGABYTE for step in compress(_growth(parts, edges), known)]
        if max(values, default=0.0) >= _LEAST_RATE:
            total = sum(curve.total for curve in parts)
            series.append(Series(own, series_colour((0, 2, 3)[number]), values, size(total), moments))
    if not series:
        return None
    chart = Chart(name, title, f"{title}: bytes per second over time.", rate, lead=lead, height=_PAIR_HEIGHT)
    return lines(chart, run.timeline, series)


def figures(run: RunFiles) -> list[tuple[str, str]]:
    """What was measured of the machine, for the table of the environment."""
    found = []
    for own in list(run.measures.machines.values())[-1:]:
        if own.cpus:
            found.append(("CPUs it may use", f"{own.cpus:g}"))
        total = [value for _, value in own.levels("memory", "total_bytes")]
        if total:
            found.append(("memory of the machine", size(total[-1])))
    return found
