"""What a task has to tell, as the JSON in its mark: values of variables, of any type that they have."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from headrace.errors import SqlError
from headrace.model.rows import Rows
from headrace.run.true_hints import NEW_RUN


def to_mark(outputs: Mapping[str, object], secret: Collection[str]) -> str:
    """The outputs as JSON. Of the `secret` variables only the names are kept."""
    return json.dumps(
        {
            "outputs": {name: _written(value) for name, value in outputs.items() if name not in secret},
            "secret": sorted(set(outputs) & set(secret)),
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def from_mark(result: str | None, task: str) -> dict[str, object]:
    """The outputs. Raises SqlError if there were secrets among them, which are kept nowhere."""
    data = json.loads(result) if result else {"outputs": {}, "secret": []}
    if data["secret"]:
        raise SqlError(
            f"task {task} has committed, but what it gave to `{data['secret'][0]}` was a secret and is not kept",
            hint=NEW_RUN,
        )
    return {name: _read(value) for name, value in data["outputs"].items()}


def _written(value: object) -> Any:
    if isinstance(value, Rows):
        return {"columns": list(value.columns), "rows": [[_written(item) for item in row] for row in value.rows]}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, datetime):
        return {"timestamp": value.isoformat()}
    return {"date": value.isoformat()} if isinstance(value, date) else value


def _read(value: Any) -> object:
    if not isinstance(value, dict):
        return value
    if "columns" in value:
        return Rows(tuple(value["columns"]), [tuple(_read(item) for item in row) for row in value["rows"]])
    if "decimal" in value:
        return Decimal(value["decimal"])
    return datetime.fromisoformat(value["timestamp"]) if "timestamp" in value else date.fromisoformat(value["date"])
