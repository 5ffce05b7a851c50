"""JSON Schema (draft 2020-12) of packages and layout files, made from the models.

Editors complete and check packages with it. Where a reference or an expression may stand in place of a value, the
schema allows it too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from headrace.model.annotations import field_kind
from headrace.model.layout import Layout
from headrace.model.names import RESERVED_VARIABLES
from headrace.model.settings import KIND_KEY, SettingKind, SpecModel
from headrace.model.spec import PackageSpec, UnknownConnectionSpec
from headrace.model.spec_environments import EnvironmentsSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_REFERENCE: dict[str, object] = {
    "type": "string",
    "pattern": r"^\$\{[^{}]+\}$",
    "description": "A reference: ${name}, ${env:NAME}, ${file:PATH} or ${system.name}.",
}
_EMBEDDED_REFERENCE: dict[str, object] = {"type": "string", "pattern": r"\$\{[^{}]+\}"}
_EXPRESSION: dict[str, object] = {
    "type": "object",
    "properties": {"expr": {"type": "string", "minLength": 1, "description": "DuckDB SQL over the parameters."}},
    "required": ["expr"],
    "additionalProperties": False,
}
# Keywords of a text that a reference inside it would violate.
_TEXT_CONSTRAINTS = frozenset({"pattern", "minLength", "maxLength", "enum", "const"})


class _Generator(GenerateJsonSchema):
    """Without the title that pydantic derives from the name of each field."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def package_schema() -> dict[str, Any]:
    """The schema of a package file."""
    schema = _schema(PackageSpec, "Headrace package", with_references=True)
    definitions = schema["$defs"]
    definitions.pop(UnknownConnectionSpec.__name__, None)
    _drop_branch(schema, f"#/$defs/{UnknownConnectionSpec.__name__}")
    reserved = {"not": {"enum": list(RESERVED_VARIABLES)}}
    names = schema["properties"]["parameters"].setdefault("propertyNames", {})
    names.update(reserved)
    return schema


def environments_schema() -> dict[str, Any]:
    """The schema of a file with environments."""
    schema = _schema(EnvironmentsSpec, "Headrace environments", with_references=True)
    schema["$defs"].pop(UnknownConnectionSpec.__name__, None)
    _drop_branch(schema, f"#/$defs/{UnknownConnectionSpec.__name__}")
    return schema


def layout_schema() -> dict[str, Any]:
    """The schema of a layout file."""
    return _schema(Layout, "Headrace layout", with_references=False)


def _schema(model: type[SpecModel], title: str, *, with_references: bool) -> dict[str, Any]:
    generated: JsonSchemaValue = model.model_json_schema(by_alias=True, schema_generator=_Generator)
    models = {subclass.__name__: subclass for subclass in _subclasses(SpecModel)}
    definitions = {model.__name__: generated, **generated.get("$defs", {})}
    for name, definition in definitions.items():
        definition.pop("title", None)
        fields = {field.alias or key: field for key, field in models[name].model_fields.items()}
        for key, setting in definition.get("properties", {}).items():
            definition["properties"][key] = _open(setting, fields[key], with_references)
    return {"$schema": DIALECT, "title": title, **generated}


def _subclasses(model: type[SpecModel]) -> Iterator[type[SpecModel]]:
    for subclass in model.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _open(setting: dict[str, Any], field: FieldInfo, with_references: bool) -> dict[str, Any]:
    """The schema of a setting, extended by what may stand in place of its value."""
    kind = field_kind(field)
    setting.pop(KIND_KEY, None)
    setting.pop("description", None)
    outer: dict[str, Any] = {"description": field.description}
    if "default" in setting:
        outer["default"] = setting.pop("default")
    if "patternProperties" in setting:
        setting["additionalProperties"] = False
    if not with_references or kind not in (SettingKind.VALUE, SettingKind.SETTING) or not setting:
        return {**outer, **setting}
    branches = _alternatives(setting)
    if not any(_takes_any_text(branch) for branch in branches):
        is_text = any(branch.get("type") == "string" and "enum" not in branch for branch in branches)
        branches.append(_EMBEDDED_REFERENCE if is_text else _REFERENCE)
    if kind is SettingKind.SETTING and not any("additionalProperties" in branch for branch in branches):
        branches.append(_EXPRESSION)
    return {**outer, **(branches[0] if len(branches) == 1 else {"anyOf": branches})}


def _alternatives(setting: dict[str, Any]) -> list[dict[str, Any]]:
    for keyword in ("anyOf", "oneOf"):
        if set(setting) == {keyword}:
            return [branch for entry in setting[keyword] for branch in _alternatives(entry)]
    return [setting]


def _takes_any_text(branch: dict[str, Any]) -> bool:
    return branch.get("type") == "string" and not _TEXT_CONSTRAINTS & set(branch)


def _drop_branch(schema: object, reference: str) -> None:
    """Remove a `$ref` from every list of alternatives."""
    if isinstance(schema, dict):
        for value in schema.values():
            _drop_branch(value, reference)
    elif isinstance(schema, list):
        schema[:] = [entry for entry in schema if not (isinstance(entry, dict) and entry.get("$ref") == reference)]
        for value in schema:
            _drop_branch(value, reference)
