"""Where rows of several sources come together in a data flow, if they do, and what stands in front of it, or beside."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from headrace.model.flow_rows import FlowRows
from headrace.model.flow_steps import inputs_of
from headrace.model.spec_joins import JoinTransformSpec
from headrace.model.spec_transforms import TogetherSpec, TransformSpec
from headrace.model.spec_unions import ReunionTransformSpec


@dataclass(frozen=True, slots=True)
class Entry:
    """Rows of one source as they come together with others: `rows`, by an input of the transform `meeting`, which has
    that `number`.
    """

    meeting: str
    number: int
    rows: FlowRows


@dataclass(frozen=True, slots=True)
class Fronts:
    """`together`: the name of the transform that brings rows of several sources together, of several joins the last
    one; `inner`: the other joins, each behind those whose rows it takes; `entries`: how rows of sources come to one of
    these; `sources`: for each of these rows the source that they are of, None if there is none, and behind these all
    other sources, which are apart; `places`: the transforms whose rows are of one of these sources, or of an inner
    join, each with its number: those in front of it, and others that lead elsewhere. Inner joins are numbered behind
    all sources. If nothing comes together, `together` is empty.
    """

    together: str
    entries: tuple[Entry, ...]
    sources: tuple[str | None, ...]
    places: Mapping[str, int] = field(default_factory=dict)
    inner: tuple[str, ...] = ()

    @property
    def are_apart(self) -> bool:
        """Whether rows of different sources never come together."""
        return not self.together

    @property
    def meetings(self) -> tuple[str, ...]:
        """All that bring rows of several sources together, the last one behind the others."""
        return (*self.inner, self.together) if self.together else ()

    @property
    def brought(self) -> tuple[str | None, ...]:
        """Of `sources` those of the rows that come together."""
        return self.sources[: len(self.entries)]

    @property
    def apart(self) -> tuple[str, ...]:
        """The others."""
        return tuple(own for own in self.sources[len(self.entries) :] if own is not None)

    def source_of(self, rows: FlowRows) -> int | None:
        """The number of the source, or the inner join, that rows are of; None for those behind all of these."""
        return self.sources.index(rows.name) if rows.name in self.sources else self.places.get(rows.name)

    def inner_of(self, rows: FlowRows) -> str | None:
        """The inner join that rows are of, so that they stand between two joins."""
        number = self.source_of(rows)
        return None if number is None or number < len(self.sources) else self.inner[number - len(self.sources)]


def bring_together(transforms: Mapping[str, TransformSpec], sources: Collection[str]) -> list[str]:
    """The transforms that bring rows of several sources together: joins and unions of sources, and unions of inputs
    that are of different ones.
    """
    origins = _origins(transforms, sources)
    return [
        name
        for name, own in transforms.items()
        if isinstance(own, TogetherSpec) or (isinstance(own, ReunionTransformSpec) and origins[name] == {name})
    ]


def sides_of_joins(transforms: Mapping[str, TransformSpec], sources: Collection[str]) -> dict[str, list[str | None]]:
    """For each join what the rows of its sides are of: a source or another join; None if there is nothing."""
    origins = _origins(transforms, sources)
    return {
        name: [next(iter(origins.get(rows.name, ())), None) for rows in inputs_of(own)]
        for name, own in transforms.items()
        if isinstance(own, JoinTransformSpec)
    }


def fronts_of(transforms: Mapping[str, TransformSpec], sources: Collection[str]) -> Fronts | None:
    """What stands in front of the one that brings rows together, and beside that. None with one source."""
    meetings = bring_together(transforms, sources)
    if not meetings and len(sources) == 1:
        return None
    origins = _origins(transforms, sources)
    taken = {own for name in meetings for rows in inputs_of(transforms[name]) for own in origins.get(rows.name, ())}
    # Where all of them go in a circle, none is the last one: that is told elsewhere.
    together = next((name for name in meetings if name not in taken), next(iter(meetings), ""))
    order = dict.fromkeys(_way(together, transforms, origins, {together})) if together else {}
    entries = [own for own in order if isinstance(own, Entry)]
    inner = tuple(own for own in order if isinstance(own, str) and own != together)
    brought = [next(iter(origins.get(own.rows.name, frozenset()) & set(sources)), None) for own in entries]
    of = (*brought, *(name for name in sources if name not in brought))
    numbers = {own: number for number, own in reversed(list(enumerate((*of, *inner))))}
    places = {name: numbers[own] for name in transforms for own in origins[name] if own in numbers}
    return Fronts(together, tuple(entries), of, places, inner)


def _way(
    name: str,
    transforms: Mapping[str, TransformSpec],
    origins: Mapping[str, frozenset[str]],
    before: Collection[str],
) -> Iterator[Entry | str]:
    """How sources come to a transform that brings rows together, and the names of such ones, each behind those whose
    rows it takes. `before`: those that take its own.
    """
    for number, rows in enumerate(inputs_of(transforms[name])):
        inner = next((own for own in origins.get(rows.name, ()) if own in transforms), None)
        if inner is None or inner in before:
            yield Entry(name, number, rows)
        else:
            yield from _way(inner, transforms, origins, {*before, inner})
    yield name


def _origins(transforms: Mapping[str, TransformSpec], sources: Collection[str]) -> dict[str, frozenset[str]]:
    """By the name of a transform what its rows are of: sources, or a transform that has brought those together."""
    nothing = frozenset[str]()
    origins = {name: frozenset({name}) for name in sources}
    # As often as they can stand one behind the other; inputs that go in a circle are told elsewhere.
    for _ in transforms:
        before = dict(origins)
        for name, own in transforms.items():
            found = nothing.union(*(origins.get(rows.name, nothing) for rows in inputs_of(own)))
            meets = isinstance(own, TogetherSpec) or (isinstance(own, ReunionTransformSpec) and len(found) > 1)
            if name not in sources:
                origins[name] = frozenset({name}) if meets else found
        if origins == before:
            break
    return {name: origins.get(name, nothing) for name in (*sources, *transforms)}
