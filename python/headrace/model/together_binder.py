"""Bind what brings the rows of several sources of a data flow together: its join, or its union; or nothing does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headrace.model.bound import Source
from headrace.model.file_source import FileSource, GenerateSource
from headrace.model.flow_rows import FlowRows
from headrace.model.flow_steps import input_path, inputs_of
from headrace.model.fronts import Fronts
from headrace.model.join_binder import JoinBinder
from headrace.model.meeting_rows import MeetingRows
from headrace.model.named_things import NamedThings
from headrace.model.problems import ProblemCollector
from headrace.model.spec_joins import JoinTransformSpec
from headrace.model.spec_transforms import TransformSpec
from headrace.model.spec_unions import ReunionTransformSpec, UnionTransformSpec
from headrace.model.sql_transform_binder import FlowColumn
from headrace.model.suggest import one_of, show_name
from headrace.model.together import Join, Together, Union
from headrace.model.union_binder import UnionBinder
from headrace.model.yaml_reader import Document, DocumentPath


class TogetherBinder:
    """Of one package's data flows. Problems are noted."""

    def __init__(self, document: Document, problems: ProblemCollector, names: NamedThings) -> None:
        self._document = document
        self._problems = problems
        self._names = names
        self._joins = JoinBinder(document, problems)
        self._unions = UnionBinder(document, problems)

    def are_right(
        self,
        fronts: Fronts,
        transforms: Mapping[str, TransformSpec],
        sources: Mapping[str, Source | None],
        path: DocumentPath,
    ) -> bool:
        """Whether what a union calls sources and inputs are such, and sources apart are files. `path`: of the flow."""
        if not self._are_files(fronts.apart, sources, path):
            return False
        if fronts.are_apart:
            return True
        name = fronts.together
        spec, path = transforms[name], (*path, "transforms", name, "union")
        if isinstance(spec, ReunionTransformSpec) and set(spec.union.inputs) <= sources.keys():
            self._problems.add(
                self._document,
                (*path, "inputs"),
                f"the inputs of the union `{show_name(name)}` are sources",
                found=", ".join(f"`{show_name(source)}`" for source in spec.union.inputs),
                expected="`sources` for sources, `inputs` if there are transforms among them",
                hint=f"Write `sources: [{', '.join(map(show_name, spec.union.inputs))}]`.",
                at_key=True,
            )
            return False
        if not isinstance(spec, UnionTransformSpec):
            return True
        for number, own in enumerate(spec.union.sources):
            if own in transforms and own not in sources:
                self._problems.add(
                    self._document,
                    (*path, "sources", number),
                    f"`{show_name(own)}` is a transform, and `sources` names sources",
                    expected=one_of(sources),
                    hint="Write `inputs` in the place of `sources`: it names transforms, and sources beside them.",
                )
                return False
        return True

    def apart(self, fronts: Fronts | None, sources: Mapping[str, Source | None]) -> Union | None:
        """What stands for the meeting of sources whose rows come together nowhere; None for all others."""
        if fronts is None or not fronts.are_apart:
            return None
        return Union("", (), (), is_beside=True, apart=_apart(fronts, sources))

    def bind(
        self,
        fronts: Fronts,
        name: str,
        spec: TransformSpec,
        path: DocumentPath,
        sources: Mapping[str, Source | Join | None],
        columns: Sequence[Mapping[str, FlowColumn] | None],
    ) -> Together | None:
        """`path` is that of the transform `name`; `sources`: those of the flow, None for one that is wrong itself, and
        the joins in front of it; `columns`: those of the rows that come together, None if they are not known yet. None
        with a problem.
        """
        inputs = inputs_of(spec)
        places = [input_path(spec, path, number) for number in range(len(inputs))]
        names = [_origin(fronts, rows) for rows in inputs]
        is_join = isinstance(spec, JoinTransformSpec)
        found = [self._source(*named, sources, is_join=is_join) for named in zip(names, places, strict=True)]
        read = [own for own in found if own is not None]
        if len(read) < len(found):
            return None
        return self._of(name, spec, path, [MeetingRows(*own) for own in zip(read, inputs, columns, strict=True)])

    def with_apart(self, together: Together, fronts: Fronts, sources: Mapping[str, Source | None]) -> Together:
        """The same with the sources that stand apart."""
        return replace(together, apart=_apart(fronts, sources))

    def _of(self, name: str, spec: TransformSpec, path: DocumentPath, rows: Sequence[MeetingRows]) -> Together | None:
        if isinstance(spec, JoinTransformSpec):
            return self._joins.bind(name, spec.join, (*path, "join"), rows[0], rows[1])
        if isinstance(spec, UnionTransformSpec):
            return self._unions.of_sources(name, spec.union, (*path, "union"), rows)
        assert isinstance(spec, ReunionTransformSpec)
        return self._unions.of_inputs(name, spec.union, (*path, "union"), rows)

    def _are_files(self, apart: Sequence[str], sources: Mapping[str, Source | None], path: DocumentPath) -> bool:
        generated = [name for name in apart if isinstance(sources.get(name), GenerateSource)]
        for name in generated:
            self._problems.add(
                self._document,
                (*path, "sources", name),
                f"the rows of `{show_name(name)}` are generated, and this data flow has other sources, too",
                expected="sources of files, or one source",
                hint="Write a data flow of its own for it.",
                at_key=True,
            )
        return not generated

    def _source(
        self, name: str, path: DocumentPath, sources: Mapping[str, Source | Join | None], *, is_join: bool
    ) -> FileSource | Join | None:
        """The source of files, or the join, that is called so; None if there is none, or it is wrong itself."""
        source: Source | Join | None = self._names.look_up(sources, name, path, "source")
        if source is None or isinstance(source, FileSource | Join):
            return source
        self._problems.add(
            self._document,
            path,
            f"the rows of `{show_name(name)}` are generated, and cannot be {'joined' if is_join else 'united'}",
            expected="a source of files",
            hint="Generate the files first, with `headrace generate`.",
        )
        return None


def _origin(fronts: Fronts, rows: FlowRows) -> str:
    """The name of what rows are of that come together."""
    number = fronts.source_of(rows)
    if number is None:
        return rows.name
    return fronts.inner_of(rows) or fronts.sources[number] or rows.name


def _apart(fronts: Fronts, sources: Mapping[str, Source | None]) -> tuple[FileSource, ...]:
    """Sources whose rows never come together with those of others."""
    found = (sources[name] for name in fronts.apart)
    return tuple(own for own in found if isinstance(own, FileSource))
