"""A source of generated TPC-H rows: one slice per chunk, under the name its file would have."""

from __future__ import annotations

from headrace.model import GenerateSource
from headrace.planning import SourceSnapshot

# Too small to be split: the generator makes them in one piece, whatever the number of chunks.
_ONE_CHUNK_TABLES = frozenset({"nation", "region"})

# The generator cuts all comments from one text of this size, made once and kept until the process ends.
_NOTE = "the generator keeps 300 MB of text in memory, beside the budget of the run"


def snapshot_generated(source: GenerateSource) -> SourceSnapshot:
    """The chunks of a generated table."""
    chunks = 1 if source.table in _ONE_CHUNK_TABLES else source.chunks
    names = (
        [f"{source.table}.tbl"] if chunks == 1 else [f"{source.table}.tbl.{number}" for number in range(1, chunks + 1)]
    )
    return SourceSnapshot(
        name=source.name,
        files=[{"path": name, "size_bytes": 0, "modified_ns": 0, "inode": 0} for name in names],
        slices=[
            {"number": number, "file": number - 1, "begin_byte": 0, "end_byte": 0} for number in range(1, chunks + 1)
        ],
        notes=[_NOTE],
        generate={"table": source.table, "scale": float(source.scale), "chunks": chunks},
    )
