"""Where rows of several sources come together in a data flow, if they do, and what stands in front of it, or beside."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from headrace.model.flow_rows import FlowRows
from headrace.model.flow_steps import inputs_of
from headrace.model.spec_transforms import TogetherSpec, TransformSpec
from headrace.model.spec_unions import ReunionTransformSpec


@dataclass(frozen=True, slots=True)
class Fronts:
    """`together`: the name of the transform that brings rows of several sources together; `inputs`: what it takes of
    them; `sources`: for each of these rows the source that they are of, None if there is none, and behind these all
    other sources, which are apart; `places`: the transforms whose rows are of one of these sources, each with its
    number: those in front of it, and others that lead elsewhere. If nothing comes together, `together` is empty.
    """

    together: str
    inputs: tuple[FlowRows, ...]
    sources: tuple[str | None, ...]
    places: Mapping[str, int] = field(default_factory=dict)

    @property
    def are_apart(self) -> bool:
        """Whether rows of different sources never come together."""
        return not self.together

    @property
    def brought(self) -> tuple[str | None, ...]:
        """Of `sources` those of the rows that come together."""
        return self.sources[: len(self.inputs)]

    @property
    def apart(self) -> tuple[str, ...]:
        """The others."""
        return tuple(own for own in self.sources[len(self.inputs) :] if own is not None)

    def source_of(self, rows: FlowRows) -> int | None:
        """The number of the source that rows are of; None for those that have come together with others."""
        return self.sources.index(rows.name) if rows.name in self.sources else self.places.get(rows.name)


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


def fronts_of(transforms: Mapping[str, TransformSpec], sources: Collection[str]) -> Fronts | None:
    """What stands in front of the one that brings rows together, and beside that. None with one source."""
    together = next(iter(bring_together(transforms, sources)), "")
    if not together and len(sources) == 1:
        return None
    origins = _origins(transforms, sources)
    inputs = inputs_of(transforms[together]) if together else ()
    of_inputs = [origins.get(rows.name, frozenset()) & set(sources) for rows in inputs]
    brought = [next(iter(own), None) for own in of_inputs]
    of = (*brought, *(name for name in sources if name not in brought))
    places = {name: number for name in transforms for number, own in enumerate(of) if origins[name] == {own}}
    return Fronts(together, inputs, of, places)


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
