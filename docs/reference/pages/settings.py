"""Tables of settings, from the pydantic models of packages and their JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from headrace.model.annotations import UNBOUNDED, field_kind
from headrace.model.layout import Layout, LayoutFile
from headrace.model.settings import SettingKind, SpecModel
from headrace.model.spec_tasks import TaskSpec

# Models that have pages or sections of their own.
_ELSEWHERE: Final[dict[type[SpecModel], str]] = {
    TaskSpec: "[tasks](#settings-of-every-task)",
    Layout: "[layout](package.md#layouts)",
    LayoutFile: "[layout](package.md#layouts)",
}
_INSTEAD: Final = {
    SettingKind.VALUE: "`${}`",
    SettingKind.SETTING: "`${}`, `{expr: SQL}`",
    SettingKind.EXPRESSION: "is SQL",
    SettingKind.SQL: "`$name`",
}
_HEAD: Final = "| setting | type | default | also | meaning |\n|---|---|---|---|---|"


def tables(model: type[SpecModel], place: str = "", leave_out: frozenset[str] = frozenset()) -> Iterator[str]:
    """The table of a model, and one for each model inside it, under its place."""
    seen: set[type[SpecModel]] = set()
    waiting = [(place, model)]
    while waiting:
        place, model = waiting.pop(0)
        if model in seen:
            continue
        seen.add(model)
        rows, inner = [], []
        schema = _schema(model)
        for name, field in model.model_fields.items():
            key = field.alias or name
            if key in leave_out and not place:
                continue
            own = schema["properties"][key]
            kind = _INSTEAD.get(field_kind(field), "")
            text = _cell(field.description or "")
            rows.append(f"| `{key}` | {_type(own, field)} | {_default(field)} | {kind} | {text} |")
            inner += [
                (f"{place}.{key}{step}".lstrip("."), found)
                for step, found in _models(field.annotation)
                if found not in _ELSEWHERE
            ]
        head = f"`{place}`: {_first_sentence(model)}\n\n" if place else ""
        yield head + "\n".join([_HEAD, *rows])
        waiting += inner


def _schema(model: type[SpecModel]) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True)
    # One that holds itself stands among its own definitions.
    return dict(schema["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema)


def _first_sentence(model: type[SpecModel]) -> str:
    return " ".join((model.__doc__ or "").split("\n\n")[0].split())


def _models(annotation: Any, step: str = "") -> Iterator[tuple[str, type[SpecModel]]]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _models(arguments[0], step)
    elif origin in (Union, UnionType):
        for argument in arguments:
            yield from _models(argument, step)
    elif origin is dict:
        yield from _models(arguments[1], f"{step}.NAME")
    elif origin is list:
        yield from _models(arguments[0], f"{step}[]")
    elif isinstance(annotation, type) and issubclass(annotation, SpecModel) and "Unknown" not in annotation.__name__:
        yield step, annotation


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or value is PydanticUndefined or isinstance(value, SpecModel) or value in ({}, []):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, list):
        return f"`[{', '.join(str(item) for item in value)}]`"
    return f"`{format(value, 'f') if isinstance(value, Decimal) else value}`"


def _type(own: Mapping[str, Any], field: FieldInfo) -> str:
    links = [_ELSEWHERE[found] for _, found in _models(field.annotation) if found in _ELSEWHERE]
    return " or ".join(dict.fromkeys(links)) or _cell(_described(own))


def _described(own: Mapping[str, Any]) -> str:
    if "$ref" in own:
        return "mapping"
    for word in ("anyOf", "oneOf", "allOf"):
        if word in own:
            branches = dict.fromkeys(_described(item) for item in own[word] if item.get("type") != "null")
            return " or ".join(text for text in branches if text)
    if "enum" in own or "const" in own:
        values = own.get("enum", [own.get("const")])
        texts = [f"`{str(value).lower() if isinstance(value, bool) else value}`" for value in values]
        return " or ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
    return _plain(own)


def _plain(own: Mapping[str, Any]) -> str:
    kind = own.get("type")
    if isinstance(kind, list):
        return " or ".join(_plain({**own, "type": item}) for item in kind if item != "null")
    if kind == "array":
        inner = _described(own.get("items", {}))
        return f"list of {inner}" if inner else "list"
    if kind == "object":
        values = own.get("additionalProperties")
        inner = _described(values) if isinstance(values, dict) else ""
        return f"mapping of names to {inner}" if inner else "mapping"
    if kind in ("integer", "number"):
        return {"integer": "whole number", "number": "number"}[kind] + _bounds(own)
    return {"string": "text", "boolean": "boolean", None: "value"}.get(kind, str(kind))


def _bounds(own: Mapping[str, Any]) -> str:
    low, high = own.get("minimum"), own.get("maximum")
    if low is not None and high not in (None, UNBOUNDED):
        return f", {low} to {high}"
    return "" if low is None else f" from {low}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
