"""The inside of a data flow: sources, transforms, destinations and rejects, from what is written in the package.

What stands in `input` makes the lines, whatever the number of parts and outputs. A setting whose value is the same in
every turn that is known before the run is shown as that value, any other one as it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from headrace import units
from headrace.graph.parts import Box, Line
from headrace.graph.words import division, written
from headrace.model import DataFlowTask, FileSource

Document = Mapping[str, Any]
Parts = tuple[tuple[Box, ...], tuple[Line, ...]]
# Settings of a transform that name where its rows come from, beside `input` itself.
_INPUTS: Final = ("input", "inputs", "left", "right", "sources")


def flow_parts(identity: str, flow: Document, known: Sequence[DataFlowTask]) -> Parts:
    """The boxes and lines of the data flow `identity`. `known`: its turns that are bound before the run."""
    sources = _mapping(flow.get("sources"))
    transforms = _mapping(flow.get("transforms"))
    destinations = _mapping(flow.get("destinations"))
    boxes: list[Box] = []
    lines: list[Line] = []
    for name, source in sources.items():
        boxes.append(_source(f"{identity}/{name}", name, source, known))
    for name, transform in transforms.items():
        side, made = _transform(f"{identity}/{name}", name, transform)
        boxes += [*side, made]
        lines += [Line(box.id, made.id, "lookup") for box in side]
        lines += _arriving(identity, made.id, transform)
    for name, destination in destinations.items():
        # Sources and transforms are told apart by their names; a destination may be called like one of them.
        table = _destination(f"{identity}/{name}/into", name, destination, known)
        boxes.append(table)
        lines += _arriving(identity, table.id, destination)
    rejects = _mapping(flow.get("rejects"))
    if rejects:
        box = Box(f"{identity}//rejects", "rejects", "rejects", "rejected rows", tuple(_reject_facts(rejects)))
        givers = [*sources, *(name for name, transform in transforms.items() if _rejects(transform))]
        boxes.append(box)
        lines += [Line(f"{identity}/{name}", box.id, "rejects") for name in givers]
    # A part that is not there is a mistake of a package that cannot be loaded.
    there = {box.id for box in boxes}
    return tuple(boxes), tuple(line for line in lines if {line.begin, line.end} <= there)


def _source(identity: str, name: str, source: Document, known: Sequence[DataFlowTask]) -> Box:
    generated = source.get("generate")
    if generated is not None:
        own = _mapping(generated)
        facts = [f"TPC-H {written(own.get('tpch'))}", f"scale {written(own.get('scale', 1))}"]
        return Box(identity, "generated", name, "generated", tuple(facts))
    read = [own for flow in known for own in flow.sources]
    patterns = {tuple(own.patterns) for own in read if isinstance(own, FileSource) and own.name == name}
    files = written(patterns.pop()) if len(patterns) == 1 else written(source.get("files"))
    return Box(identity, "file", name, "files", (files, f"in {written(source.get('connection'))}"))


def _transform(identity: str, name: str, transform: Document) -> tuple[list[Box], Box]:
    """The transform, and what is read beside its rows."""
    kind = next((key for key in transform if key not in _INPUTS), "transform")
    settings = _mapping(transform.get(kind))
    facts = []
    if not settings:
        facts.append(written(transform.get(kind, "")))
    keys = _mapping(settings.get("on"))
    if "type" in settings:
        facts.append(written(settings["type"]))
    if keys:
        facts.append(", ".join(f"{ours} = {written(theirs)}" for ours, theirs in keys.items()))
    if "missing" in settings:
        facts.append(f"missing: {written(settings['missing'] or 'null')}")
    added = settings.get("add")
    if added:
        facts.append(f"adds {', '.join(added) if isinstance(added, Mapping) else written(added)}")
    no_match = settings.get("no_match")
    if no_match is not None:
        facts.append(f"no match: {_setting(no_match)}")
    if kind == "split":
        facts += [f"{output}: {written(rule)}" for output, rule in settings.items()]
    side = [] if kind != "lookup" else [_looked_up(f"{identity}/from", settings)]
    return side, Box(identity, "transform", name, kind.replace("_", " "), tuple(fact for fact in facts if fact))


def _looked_up(identity: str, settings: Document) -> Box:
    place = f"in {written(settings['connection'])}" if "connection" in settings else ""
    facts = (place,) if place else ()
    if settings.get("table") is not None:
        return Box(identity, "table", written(settings["table"]), "table", facts)
    if settings.get("files") is not None:
        return Box(identity, "file", written(settings["files"]), "files", facts)
    return Box(identity, "table", " ".join(written(settings.get("query", "")).split()), "query", facts)


def _destination(identity: str, name: str, destination: Document, known: Sequence[DataFlowTask]) -> Box:
    def one(key: str) -> str | None:
        values = {str(getattr(flow.destination, key)) for flow in known}
        if len(values) == 1:
            return values.pop()
        return written(destination[key]) if destination.get(key) is not None else None

    tables = {".".join(filter(None, (flow.destination.schema, flow.destination.table))) for flow in known}
    table = tables.pop() if len(tables) == 1 else written(destination.get("table"))
    ways = [text for key in ("target", "load") if (text := one(key)) is not None]
    facts = [f"{table} in {written(destination.get('connection'))}", ", ".join(ways)]
    facts += division(destination.get("partition"))
    return Box(identity, "table", name, "table", tuple(fact for fact in facts if fact))


def _reject_facts(rejects: Document) -> Iterator[str]:
    if rejects.get("limit") is not None:
        limit = rejects["limit"]
        yield f"up to {units.plural(limit, 'row') if isinstance(limit, int) else f'{written(limit)} rows'}"
    if rejects.get("percent") is not None:
        yield f"up to {written(rejects['percent'])} % of the rows"
    if rejects.get("per_file") is not None:
        yield "limits for each file"
    if rejects.get("table") is not None:
        yield f"in the run folder and table {written(rejects['table'])}"


def _rejects(transform: Document) -> bool:
    """Whether rows may be rejected: those that match nothing, or that a query or a condition fails for."""
    settings = _mapping(transform.get("lookup"))
    return (
        "sql" in transform
        or "split" in transform
        or (bool(settings) and settings.get("no_match", "reject") == "reject")
    )


def _arriving(identity: str, end: str, part: Document) -> Iterator[Line]:
    for name, output in _inputs(part):
        yield Line(f"{identity}/{name}", end, "rows", output)


def _inputs(part: Document) -> Iterator[tuple[str, str]]:
    """Names of the parts whose rows arrive, each with the output that they leave by."""
    for settings in (part, *(value for value in part.values() if isinstance(value, Mapping))):
        for key in _INPUTS:
            value = settings.get(key)
            for name in value if isinstance(value, list) else [value]:
                if isinstance(name, str):
                    before, _, output = name.partition(".")
                    yield before, output


def _setting(value: object) -> str:
    """`{default: -1}` as `default -1`."""
    if isinstance(value, Mapping) and "expr" not in value:
        return ", ".join(f"{key} {_setting(item)}" for key, item in value.items())
    return written(value)


def _mapping(value: object) -> Document:
    return value if isinstance(value, Mapping) else {}
