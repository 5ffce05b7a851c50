"""Which sources a transform reads that stands in front of all others: those of files, by their names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from headrace.model.bound import FileSource, Source
from headrace.model.named_things import NamedThings
from headrace.model.problems import ProblemCollector
from headrace.model.suggest import one_of, show_name
from headrace.model.yaml_reader import Document, DocumentPath


@dataclass(frozen=True, slots=True)
class SourcesRead:
    """Of one such transform. `kind`: what it is; `done`: what becomes of its rows; `hint`: what to write for rows of a
    transform. Problems are noted.
    """

    document: Document
    problems: ProblemCollector
    names: NamedThings
    kind: str
    done: str
    hint: str = ""

    def are_sources(
        self,
        written: Mapping[DocumentPath, str],
        sources: Mapping[str, Source | None],
        transforms: Collection[str],
    ) -> bool:
        """Whether no name, by its path, is that of a transform. `sources` and `transforms`: those of the flow."""
        for path, name in written.items():
            if name in transforms and name not in sources:
                self.problems.add(
                    self.document,
                    path,
                    f"`{show_name(name)}` is a transform, and a {self.kind} reads sources",
                    expected=one_of(sources),
                    hint=self.hint or f"Let the transform read the rows of the {self.kind}.",
                )
                return False
        return True

    def find(self, name: str, path: DocumentPath, sources: Mapping[str, Source | None]) -> FileSource | None:
        """The source of files that is called so; None if there is none, or it is wrong itself."""
        source = self.names.look_up(sources, name, path, "source")
        if source is None or isinstance(source, FileSource):
            return source
        self.problems.add(
            self.document,
            path,
            f"the rows of `{show_name(name)}` are generated, and cannot be {self.done}",
            expected="a source of files",
            hint="Generate the files first, with `headrace generate`.",
        )
        return None
