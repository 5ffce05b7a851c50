"""Rows that a join or a union takes of one source, or of another join, as far as they are known when it is bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.model.file_source import FileSource
from headrace.model.flow_rows import FlowRows
from headrace.model.sql_transform_binder import FlowColumn
from headrace.model.suggest import show_name
from headrace.model.together import Join


@dataclass(frozen=True, slots=True)
class MeetingRows:
    """`rows`: those of `source` itself, which may be another join, or behind the transforms in front of the meeting;
    `columns`: theirs, None if not even their names are known yet.
    """

    source: FileSource | Join
    rows: FlowRows
    columns: Mapping[str, FlowColumn] | None

    @property
    def files(self) -> FileSource:
        """The source, where it is none but one of files: that of a union."""
        assert isinstance(self.source, FileSource)
        return self.source

    @property
    def has_front(self) -> bool:
        """Whether they pass a transform before, be it another join."""
        return isinstance(self.source, Join) or self.rows.name != self.source.name

    @property
    def are_described(self) -> bool:
        """Whether the types of all their columns are known."""
        return self.columns is not None and all(own.type is not None for own in self.columns.values())

    @property
    def shown(self) -> str:
        """Whose columns they have, for messages."""
        return f"the rows of `{show_name(self.rows.shown)}` have"
