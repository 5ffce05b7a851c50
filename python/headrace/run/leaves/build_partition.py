"""The `partition` clause of a build, whose values are read as those of a column of its query."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import BindingError
from headrace.model import Column, PartitionClause
from headrace.model.partition_binder import PartitionBinder
from headrace.model.problems import ProblemCollector
from headrace.model.spec_partition import PartitionSpec
from headrace.model.yaml_reader import Document, DocumentPath
from headrace.planning import QueryColumn


def partition_of_build(
    spec: PartitionSpec | None, columns: Sequence[QueryColumn], document: Document, path: DocumentPath
) -> PartitionClause | None:
    """The clause that stands at `path`; None without one. Raises BindingError with what is wrong about it.

    A column whose type has no counterpart cannot be a key.
    """
    if spec is None:
        return None
    problems = ProblemCollector(document.file)
    known = [Column(name=column.name, type=column.type) for column in columns if column.type is not None]
    clause = PartitionBinder(document, problems, path).bind(spec, None, known, None, is_reload=False)
    problems.raise_if_any(BindingError)
    return clause
