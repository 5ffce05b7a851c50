"""What the transforms of a data flow read, and by which outputs rows leave them, as packages write it."""

from __future__ import annotations

from headrace.model.flow_rows import MAIN, FlowRows, rows_of
from headrace.model.spec_joins import JoinTransformSpec
from headrace.model.spec_transforms import (
    NO_MATCH,
    OUTPUT,
    LookupTransformSpec,
    SplitTransformSpec,
    SqlTransformSpec,
    TogetherSpec,
    TransformSpec,
)
from headrace.model.spec_unions import ReunionTransformSpec, UnionTransformSpec
from headrace.model.yaml_reader import DocumentPath

# Those whose rows are of one source, or behind what brings those of several together.
Step = LookupTransformSpec | SqlTransformSpec | SplitTransformSpec | ReunionTransformSpec
# Those that may bring them together.
MeetingSpec = TogetherSpec | ReunionTransformSpec


def outputs_of(spec: TransformSpec) -> tuple[str, ...]:
    """The outputs of a transform, in the order of their numbers."""
    if isinstance(spec, SplitTransformSpec):
        return (*spec.conditions, spec.rest)
    if isinstance(spec, LookupTransformSpec) and spec.lookup.no_match == OUTPUT:
        return (MAIN, NO_MATCH)
    return (MAIN,)


def discarded_by(spec: TransformSpec) -> list[str]:
    """The outputs that nobody has to read."""
    return spec.discard if isinstance(spec, LookupTransformSpec | SplitTransformSpec) else []


def inputs_of(spec: TransformSpec) -> tuple[FlowRows, ...]:
    """The rows that a transform reads."""
    if isinstance(spec, JoinTransformSpec):
        return rows_of(spec.join.left), rows_of(spec.join.right)
    if isinstance(spec, UnionTransformSpec):
        return tuple(map(FlowRows, spec.union.sources))
    written = spec.union.inputs if isinstance(spec, ReunionTransformSpec) else [spec.input]
    return tuple(rows_of(own) for own in written)


def input_path(spec: TransformSpec, path: DocumentPath, number: int) -> DocumentPath:
    """Where one of its inputs is written. `path`: of the transform."""
    if isinstance(spec, JoinTransformSpec):
        return (*path, "join", ("left", "right")[number])
    if isinstance(spec, UnionTransformSpec):
        return (*path, "union", "sources", number)
    return (*path, "union", "inputs", number) if isinstance(spec, ReunionTransformSpec) else (*path, "input")
