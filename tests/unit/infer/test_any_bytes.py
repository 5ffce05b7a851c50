"""Files of any bytes: a layout that loads them, or an error that says why not; never a defect."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from headrace.errors import SourceError
from headrace.infer import Given, InferOptions, infer_files, layout_text
from headrace.infer.checking import check_files
from headrace.infer.looking import look_at
from headrace.model.layout_text import read_layout

_PIECES = strategies.sampled_from(
    [
        b",", b";", b"\t", b"|", b'"', b'""', b"'", b"\\", b"\n", b"\r\n", b"\r", b"\0", b"\xff", b"\xe9", b"\xc3\xa9",
        b"\xef\xbb\xbf", b"\xff\xfe", b"a\0", b"#", b"--", b" ", b"1", b"2.5", b"1,5", b"x", b"id", b"2024-01-01",
        b"03/04/2026", b"${x}", b"{", b"<a>", b"+--+", b"\x1b[0m", b"\xe2\x80\xa8", b"\x1f\x8b", b"1;2\n", b"a,b\n",
    ]
)  # fmt: skip


def loads(path: Path, options: InferOptions) -> None:
    try:
        look_at([path], options.given)
    except SourceError:
        return  # named and refused; what is not refused can be inferred
    inferred = infer_files([path], options)
    text = layout_text(inferred)
    report = check_files([path], read_layout(text.encode(), "layout"), 1)
    # The rows that are rejected are those that were told as misfits; a type may find another fault in them first.
    assert report["rejects"]["count"] == inferred.misfits["count"], text


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=strategies.lists(_PIECES, max_size=40))
def test_pieces_of_text(tmp_path: Path, pieces: list[bytes]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"".join(pieces))
    loads(path, InferOptions(streams=1))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=strategies.binary(max_size=200), header=strategies.sampled_from([None, True, False]))
def test_bytes_without_a_meaning(tmp_path: Path, content: bytes, header: bool | None) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    loads(path, InferOptions(given=Given(header=header, delimiter=";"), streams=1))


@pytest.mark.rotates
def test_ten_thousand_columns(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    names = ",".join(f"c{number}" for number in range(10_000))
    rows = [",".join(str(row * number) for number in range(10_000)) for row in range(20)]
    path.write_text("\n".join([names, *rows]) + "\n")
    inferred = infer_files([path], InferOptions(streams=2))
    assert (len(inferred.columns), inferred.rows) == (10_000, 20)
    assert {str(column.type) for column in inferred.columns} == {"int16", "int32"}
    text = layout_text(inferred)
    layout = read_layout(text.encode(), "layout")
    # A layout file has at most a megabyte: then what is known of each column is left out.
    longer = replace(inferred, facts=tuple(replace(own, distinct=10**40) for own in inferred.facts))
    assert " distinct, " in text and " distinct" not in layout_text(longer)
    assert check_files([path], layout, 2)["rejects"]["count"] == 0


def test_a_field_of_ten_million_characters(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("id;text\n1;" + "x" * 10_000_000 + "\n2;y\n")
    inferred = infer_files([path], InferOptions(streams=1))
    assert [str(column.type) for column in inferred.columns] == ["int16", "string"]


def test_compressed_files_are_inferred_as_their_text(tmp_path: Path) -> None:
    text = "id;name\n" + "".join(f"{number};n{number}\n" for number in range(50_000))
    plain, packed = tmp_path / "a.csv", tmp_path / "a.csv.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    one, other = (infer_files([path], InferOptions(streams=2)) for path in (plain, packed))
    assert (one.dialect, one.columns, one.facts) == (other.dialect, other.columns, other.facts)
