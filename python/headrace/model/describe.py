"""A bound package as JSON-ready data without secrets: for `check`, plans, run folders and reports."""

from __future__ import annotations

from dataclasses import asdict

from headrace.model.bound import (
    BoundPackage,
    DataFlowTask,
    Destination,
    GatheredSource,
    Lookup,
    Source,
    Transform,
    outputs_taken,
)
from headrace.model.describe_tasks import describe_control, plain
from headrace.model.file_source import FileSource
from headrace.model.layout import Layout
from headrace.model.lookup_sources import DatabaseQuerySource, DatabaseSource, QuerySource, TableSource
from headrace.model.partition import describe_clause
from headrace.model.redaction import redact_data
from headrace.model.reunion import Reunion
from headrace.model.split import Split
from headrace.model.together import Join, Union


def describe(package: BoundPackage) -> dict[str, object]:
    """Everything a package says after binding; literal secrets are replaced by `***`."""
    data = {
        "path": str(package.path),
        "package": package.name,
        "description": package.description,
        "content_hash": package.content_hash,
        "parameters": {name: plain(value) for name, value in package.parameters.items()},
        "given": package.given,
        "streams": package.streams,
        "memory_bytes": package.memory_bytes,
        "connections": {name: connection.describe() for name, connection in package.connections.items()},
        **describe_control(package),
        "data_flows": [_flow(flow) for flow in package.data_flows()],
    }
    redacted = redact_data(data, package.secrets)
    assert isinstance(redacted, dict)
    return redacted


def _flow(flow: DataFlowTask) -> dict[str, object]:
    return {
        "task": flow.id,
        **({"flow_of": flow.flow} if flow.flow else {}),
        "definition": flow.definition,
        "description": flow.description,
        "when": flow.when,
        "source": _source(flow.source),
        **({"join": _join(flow.meeting)} if isinstance(flow.meeting, Join) else {}),
        **({"union": _union(flow.meeting)} if isinstance(flow.meeting, Union) else {}),
        "transforms": [{**_transform(own), **_taken(own, flow), **_in_front(own, flow)} for own in flow.transforms],
        "destination": _destination(flow.destination),
        "rejects": {**flow.rejects.to_dict(), **({"table": flow.reject_table} if flow.reject_table else {})},
    }


def _join(join: Join, *, has_first: bool = True) -> dict[str, object]:
    """`has_first`: the first of its sources is the one that is told as that of the flow."""
    left, right = join.sides
    is_told = has_first and not isinstance(left, Join)
    return {
        "name": join.name,
        "type": join.kind,
        "left": left.name if is_told else _side(left, has_first=has_first),
        "right": _side(right, has_first=False),
        **_inputs(join),
        "on": {key.left: key.right for key in join.keys},
        "columns": [
            {"name": own.name, "side": own.side, "from": own.column, "type": str(own.type), "nullable": own.nullable}
            for own in join.columns
        ],
    }


def _side(side: FileSource | Join, *, has_first: bool) -> dict[str, object]:
    return {"join": _join(side, has_first=has_first)} if isinstance(side, Join) else _source(side)


def _union(union: Union) -> dict[str, object]:
    return {
        "name": union.name,
        "sources": [_source(own) for own in union.brought],
        **_inputs(union),
        "columns": [
            {
                "name": own.name,
                "from": {source.name: column for source, column in zip(union.brought, own.columns, strict=True)},
                "type": str(own.type),
                "nullable": own.may_be_null,
            }
            for own in union.columns
        ],
    }


def _transform(own: Transform) -> dict[str, object]:
    if isinstance(own, Lookup):
        return _lookup(own)
    if isinstance(own, Split):
        conditions = {"conditions": dict(own.conditions), "outputs": list(own.outputs)}
        return {"name": own.name, "kind": "split", "input": own.input, **conditions}
    if isinstance(own, Reunion):
        return _reunion(own)
    columns = [
        {"name": column.name, "type": str(column.type), "nullable": column.nullable, "from": column.origin}
        for column in own.columns
    ]
    described = columns if own.is_described else None
    return {"name": own.name, "kind": "sql", "input": own.input, "sql": own.written, "columns": described}


def _taken(own: Transform, flow: DataFlowTask) -> dict[str, object]:
    """Of a transform with several outputs those by which rows go on to the destination."""
    if len(own.outputs) == 1:
        return {}
    return {"taken": [rows.shown for rows in outputs_taken(own, flow.rows_read)]}


def _in_front(own: Transform, flow: DataFlowTask) -> dict[str, object]:
    """Of a transform in front of a join or a union that, and the source, or inner join, whose rows pass it."""
    if own.front_of is None or flow.meeting is None:
        return {}
    inner = flow.meeting.inner if isinstance(flow.meeting, Join) else ()
    every: tuple[FileSource | Join, ...] = (*flow.meeting.sources, *inner)
    of = every[own.front_of]
    meeting = next((other.name for other in inner if of in other.sides), flow.meeting.name)
    return {"in_front_of": meeting, "of_source": of.name}


def _inputs(together: Join | Union) -> dict[str, object]:
    return {"inputs": [rows.shown for rows in together.inputs]} if together.has_fronts else {}


def _reunion(own: Reunion) -> dict[str, object]:
    inputs = [rows.shown for rows in own.inputs]
    columns = [
        {
            "name": column.name,
            "from": {name: origins[place] for name, origins in zip(inputs, own.origins, strict=True)},
            "type": str(column.type),
            "nullable": column.nullable,
        }
        for place, column in enumerate(own.columns)
    ]
    return {"name": own.name, "kind": "union", "inputs": inputs, "columns": columns if own.is_described else None}


def _lookup(lookup: Lookup) -> dict[str, object]:
    return {
        "name": lookup.name,
        "kind": "lookup",
        "source": _lookup_source(lookup.source),
        "on": {key.column: key.lookup_column for key in lookup.keys},
        "added": [
            {**asdict(column), "type": str(column.type) if lookup.is_described else None} for column in lookup.added
        ],
        "no_match": "output" if lookup.sends_misses else "reject" if lookup.rejects_misses else "default",
        "duplicates": "first" if lookup.keeps_first else "error",
        "case": "ignore" if lookup.ignores_case else "exact",
    }


def _lookup_source(source: FileSource | QuerySource | DatabaseSource) -> dict[str, object]:
    if isinstance(source, FileSource):
        return _source(source)
    if isinstance(source, TableSource):
        table = source.table if source.schema is None else f"{source.schema}.{source.table}"
        return {"name": source.name, "connection": source.connection.name, "table": table}
    if isinstance(source, DatabaseQuerySource):
        return {"name": source.name, "connection": source.connection.name, "query": source.query.written}
    columns = [{"name": column.name, "type": str(column.type)} for column in source.columns.values()]
    return {"name": source.name, "query": source.query.written, "columns": columns}


def _source(source: Source) -> dict[str, object]:
    layout = _layout(source.layout)
    if isinstance(source, FileSource):
        return {
            "name": source.name,
            "connection": source.connection,
            "folder": str(source.folder),
            "patterns": list(source.patterns),
            "missing": source.missing,
            "empty": source.empty,
            "compression": source.compression,
            "last_row_end": source.last_row_end,
            "wait_seconds": source.wait_seconds,
            "layout": layout,
        }
    if isinstance(source, GatheredSource):
        return {"name": source.name, "sql": source.written, "of": _source(source.before.source), "layout": layout}
    return {
        "name": source.name,
        "generator": source.generator,
        "table": source.table,
        "scale": source.scale,
        "chunks": source.chunks,
        "layout": layout,
    }


def _layout(layout: Layout) -> dict[str, object]:
    dialect = layout.to_core()
    return {
        **{name: value for name, value in dialect.items() if name not in ("columns", "made")},
        "row_end": layout.row_end,
        "columns": [
            {**column, "type": str(own.type), "nullable": own.nullable}
            for own, column in zip(layout.fields, dialect["columns"], strict=True)
        ],
        **_made(layout),
    }


def _made(layout: Layout) -> dict[str, object]:
    made = [
        {"name": column.name, "from": column.from_, "type": str(column.type), "nullable": column.nullable}
        for column in layout.made
    ]
    return {"made": made} if made else {}


def _destination(destination: Destination) -> dict[str, object]:
    return {
        "name": destination.name,
        "connection": destination.connection.name,
        "schema": destination.schema,
        "table": destination.table,
        "target": destination.target,
        "load": destination.load,
        "columns": None if destination.columns is None else dict(destination.columns),
        "partition": None if destination.partition is None else describe_clause(destination.partition),
        "partitions": list(destination.partitions),
        "commit": None if destination.commit is None else asdict(destination.commit),
        "options": destination.options.to_dict(),
    }
