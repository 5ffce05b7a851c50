"""Bind what brings the rows of several sources of a data flow together: its join, or its union; or nothing does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.model.bound import FileSource, GenerateSource, Source, Together, Union
from headrace.model.flow_steps import input_path
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
        if fronts.are_apart:
            return self._are_files(sources, path)
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
        return Union("", tuple(own for own in sources.values() if isinstance(own, FileSource)), (), is_beside=True)

    def bind(
        self,
        fronts: Fronts,
        spec: TransformSpec,
        path: DocumentPath,
        sources: Mapping[str, Source | None],
        columns: Sequence[Mapping[str, FlowColumn] | None],
    ) -> Together | None:
        """`path` is that of the transform; `sources`: those of the flow, None for one that is wrong itself; `columns`:
        those of the rows that come together, None if they are not known yet. None with a problem.
        """
        places = [input_path(spec, path, number) for number in range(len(fronts.inputs))]
        names = [own or rows.name for own, rows in zip(fronts.sources, fronts.inputs, strict=True)]
        is_join = isinstance(spec, JoinTransformSpec)
        found = [self._source(*named, sources, is_join=is_join) for named in zip(names, places, strict=True)]
        read = [own for own in found if own is not None]
        if len(read) < len(found) or not self._reads_all(fronts.together, spec, names, path, sources):
            return None
        rows = [MeetingRows(*own) for own in zip(read, fronts.inputs, columns, strict=True)]
        if isinstance(spec, JoinTransformSpec):
            return self._joins.bind(fronts.together, spec.join, (*path, "join"), rows[0], rows[1])
        if isinstance(spec, UnionTransformSpec):
            return self._unions.of_sources(fronts.together, spec.union, (*path, "union"), rows)
        assert isinstance(spec, ReunionTransformSpec)
        return self._unions.of_inputs(fronts.together, spec.union, (*path, "union"), rows)

    def _are_files(self, sources: Mapping[str, Source | None], path: DocumentPath) -> bool:
        generated = [name for name, own in sources.items() if isinstance(own, GenerateSource)]
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
        self, name: str, path: DocumentPath, sources: Mapping[str, Source | None], *, is_join: bool
    ) -> FileSource | None:
        """The source of files that is called so; None if there is none, or it is wrong itself."""
        source = self._names.look_up(sources, name, path, "source")
        if source is None or isinstance(source, FileSource):
            return source
        self._problems.add(
            self._document,
            path,
            f"the rows of `{show_name(name)}` are generated, and cannot be {'joined' if is_join else 'united'}",
            expected="a source of files",
            hint="Generate the files first, with `headrace generate`.",
        )
        return None

    def _reads_all(
        self,
        name: str,
        spec: TransformSpec,
        read: Sequence[str],
        path: DocumentPath,
        sources: Mapping[str, Source | None],
    ) -> bool:
        """Whether the union takes rows of every source. Of how many sources there is a join was looked at before."""
        others = [f"`{show_name(own)}`" for own in sources if own not in read]
        if isinstance(spec, JoinTransformSpec) or not others:
            return True
        self._problems.add(
            self._document,
            (*path, "union", "inputs" if isinstance(spec, ReunionTransformSpec) else "sources"),
            f"no rows of {' and '.join(others)} come to the union `{show_name(name)}`",
            expected="all sources of the data flow",
            hint="Add what is missing, or write a data flow of its own for what the union does not read.",
        )
        return False
