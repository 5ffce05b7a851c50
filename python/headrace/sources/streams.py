"""Standard input and named pipes: what can be read once only, and what that rules out."""

from __future__ import annotations

from headrace.errors import SourceError
from headrace.planning import SourceSnapshot, counted
from headrace.planning.wording import stream_name


def check_streams(source: SourceSnapshot, streams: int, *, commits: bool) -> None:
    """Raises SourceError for more streams than are read at the same time, and for rows that are committed on the way: a
    load that breaks off could not go on.
    """
    names = source.streams
    if len(names) > streams:
        raise SourceError(
            f"{_whose(source)} more pipes than streams read them",
            found=f"{counted(len(names), 'pipe')}, {counted(streams, 'stream')}",
            hint=f"Set `streams: {len(names)}`: who writes to one of them may wait for another.",
        )
    if names and commits:
        raise SourceError(
            f"rows of {stream_name(names[0])} cannot be committed on the way",
            found="`commit`, and a source that can be read once only",
            hint="Leave `commit` out, or write the rows to a file first.",
        )


def _whose(source: SourceSnapshot) -> str:
    with_pipes = [part.name for number, part in enumerate(source.parts) if source.part(number).streams]
    if len(with_pipes) > 1:
        return f"the sources {' and '.join(f'`{name}`' for name in with_pipes)} have"
    return f"source `{with_pipes[0] if with_pipes else source.name}` has"
