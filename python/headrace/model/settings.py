"""How the pydantic models declare a setting: its text, default, and what may stand in place of a literal value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic_core import PydanticCustomError, PydanticUndefined

Validated = TypeVar("Validated")

# Type of every error that this project's validators raise; `validation` reads its context.
OWN_ERROR = "headrace"
# Key under which a field's json_schema_extra holds its SettingKind.
KIND_KEY = "x-headrace-kind"


# Marks a list that may be written as one text.
ONE_OR_MANY = "headrace: one or many"


class SettingKind(Enum):
    """What may stand in place of a literal value of the setting."""

    LITERAL = "literal"  # nothing else
    PROSE = "prose"  # nothing else, and `${` has no meaning in it
    VALUE = "value"  # `${name}`
    SETTING = "setting"  # `${name}` or `{expr: SQL}`
    EXPRESSION = "expression"  # the value itself is an expression in DuckDB SQL
    SQL = "sql"  # the value itself is SQL of a destination, in which `$name` is bound


class SpecModel(BaseModel):
    """Base of all models of a package: unknown keys and silent conversions are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True)


def setting(
    description: str,
    *,
    default: Any = PydanticUndefined,
    default_factory: Callable[[], Any] | None = None,
    kind: SettingKind = SettingKind.LITERAL,
    **constraints: Any,
) -> Any:
    """A pydantic field. Without a default the setting is required."""
    extra: dict[str, JsonValue] = {KIND_KEY: kind.value}
    if default_factory is not None:
        return Field(default_factory=default_factory, description=description, json_schema_extra=extra, **constraints)
    return Field(default=default, description=description, json_schema_extra=extra, **constraints)


def own_error(
    what: str, *, expected: str | None = None, hint: str | None = None, path: tuple[str | int, ...] = ()
) -> PydanticCustomError:
    """An error for validators to raise; `path` leads from the validated value to the part that is wrong."""
    return PydanticCustomError(OWN_ERROR, "{what}", {"what": what, "expected": expected, "hint": hint, "path": path})


@contextmanager
def errors_below(*path: str | int) -> Iterator[None]:
    """Lengthens the path of an own error that is raised inside, at its front."""
    try:
        yield
    except PydanticCustomError as error:
        context = error.context or {}
        if error.type != OWN_ERROR:
            raise
        raise own_error(
            context["what"], expected=context["expected"], hint=context["hint"], path=(*path, *context["path"])
        ) from None
