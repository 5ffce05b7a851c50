"""Settings that sources of files and lookups share: which files, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, WithJsonSchema

from headrace.model.home import URL_HINT, is_url_with_login
from headrace.model.layout import Layout
from headrace.model.settings import ONE_OR_MANY, own_error
from headrace.model.suggest import show_name

# Stands for 1 to the package's number of streams.
STREAM_PLACEHOLDER: Final = "{stream}"


def _one_as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _check_patterns(patterns: list[str]) -> list[str]:
    if not patterns:
        raise own_error("the source has no file pattern", expected="at least one file name or pattern")
    for number, pattern in enumerate(patterns):
        if not pattern or "\0" in pattern:
            raise own_error("a file pattern is empty", expected="a file name or pattern", path=(number,))
        if pattern.startswith("/"):
            raise own_error(
                "a file pattern is an absolute path",
                expected="a path below the folder of the connection",
                hint="Put the folder into the connection's `path`.",
                path=(number,),
            )
        if is_url_with_login(pattern):
            raise own_error("a file pattern is a URL", expected="a file name or pattern", hint=URL_HINT, path=(number,))
        for placeholder in re.findall(r"\{([^{}]*)\}", pattern):
            if placeholder != "stream":
                raise own_error(
                    f"`{{{show_name(placeholder)}}}` has no meaning in a file pattern",
                    expected=f"{STREAM_PLACEHOLDER} or ${{name}}",
                    hint=f"For a parameter write `${{{placeholder or 'name'}}}`.",
                    path=(number,),
                )
    return patterns


FilePatterns = Annotated[
    list[Annotated[str, Field(json_schema_extra={"minLength": 1})]],
    ONE_OR_MANY,
    BeforeValidator(_one_as_list),
    AfterValidator(_check_patterns),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
            ]
        }
    ),
]


def _layout_tag(value: object) -> str:
    # `{expr: ...}` stands in place of a name.
    return "<layout>" if isinstance(value, (Mapping, Layout)) and set(value) != {"expr"} else "<name>"


LayoutSetting = Annotated[
    Annotated[str, Tag("<name>")] | Annotated[Layout, Tag("<layout>")], Discriminator(_layout_tag)
]
