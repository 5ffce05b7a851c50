"""Encodings of layouts: names, and texts that a file cannot hold."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from headrace.model import Layout
from headrace.model.encoding import CODECS, NAMES, lacks
from headrace.planning.memory import slab_bytes

GENERATOR = Path(__file__).parents[3] / "crates" / "types" / "generate_code_pages.py"


def layout(**settings: Any) -> Layout:
    columns = [{"name": "größe", "type": "string"}, {"name": "b", "type": "decimal(9,2)"}]
    return Layout.model_validate({"delimiter": "|", "columns": columns, **settings})


def test_the_tables_of_the_core_are_those_that_the_script_makes() -> None:
    spec = importlib.util.spec_from_file_location("generate_code_pages", GENERATOR)
    assert spec is not None and spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    assert generator.CODECS == CODECS
    assert generator.TARGET.read_text(encoding="utf-8") == generator.source()


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_accepted(name: str) -> None:
    assert layout(encoding=name).to_core()["encoding"] == name


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("latin1", "iso-8859-1"), ("UTF8", "utf-8"), ("cp1252", "windows-1252"), ("ibm850", "cp850"),
        ("windows1251", "windows-1251"), ("iso-8859-12", "iso-8859-1"), ("koi8r", "koi8-r"), ("utf16-le", "utf-16le"),
        ("Shift_JIS", "Shift_JIS is not supported"), ("GB18030", "GBK is not supported"),
        ("big5-hkscs", "Big5 is not supported"), ("UTF-7", "UTF-7 is not supported"),
        ("utf-32le", "UTF-32 is not supported"), ("EBCDIC-CP-US", "EBCDIC is not supported"),
    ],
)  # fmt: skip
def test_other_names_are_refused_with_the_near_one(name: str, hint: str) -> None:
    with pytest.raises(ValidationError) as caught:
        layout(encoding=name)
    assert hint in str(caught.value.errors())


@pytest.mark.parametrize(
    ("settings", "character"),
    [
        ({"encoding": "koi8-r", "delimiter": "¦"}, "¦"),
        ({"encoding": "windows-1251", "header": "by_name"}, "ö"),
        ({"encoding": "windows-1252", "null_tokens": ["нет"]}, "н"),
        ({"encoding": "iso-8859-1", "formats": {"number": {"currency": ["€"]}}}, "€"),
        ({"encoding": "cp437", "comment": "€"}, "€"),
        ({"encoding": "iso-8859-1", "row_end": "€\n"}, "€"),
    ],
)
def test_texts_that_no_file_can_hold_are_refused(settings: dict[str, Any], character: str) -> None:
    with pytest.raises(ValidationError, match=f"has no character .*{character}"):
        layout(**settings)
    assert layout(**{**settings, "encoding": "utf-16"}).encoding == "utf-16"
    assert lacks("windows-1252", "ä€") is None


def test_the_plan_makes_room_for_texts_that_grow() -> None:
    plain, page = layout(), layout(encoding="windows-1252")
    assert (plain.rewritten_blocks, page.rewritten_blocks) == (0, 3)
    assert layout(unmappable="replace").rewritten_blocks == 3
    assert slab_bytes(plain.columns, 100, rewrites=3) == slab_bytes(plain.columns, 100) + 300
    assert layout(encoding="utf-16").hidden_row_ends() == ["encoding"]
