"""Claims on the rejects of a data flow with several destinations, of those that each of them has in its ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from headrace.run.number_list import union
from headrace.run.reject_accounts import reject_accounts
from headrace.targets import Replay


def merged_claims(by_way: Iterable[Sequence[Replay]]) -> list[Replay]:
    """A replay has claimed a reject for all tables that lack its row. It is done when it is in all places, and a half
    as long as it is in some.

    Counts are sums over the tables: rows beyond one for each reject are also those that went into several. Raises
    AccountsError if those of a table do not balance.
    """
    by_run: dict[str, list[list[Replay]]] = {}
    for claims in by_way:
        reject_accounts(0, claims)
        for run_id, own in groupby(sorted(claims, key=lambda claim: claim.run_id), key=lambda claim: claim.run_id):
            by_run.setdefault(run_id, []).append(list(own))
    return [claim for _, ways in sorted(by_run.items()) for claim in _merged(ways)]


def _merged(ways: Sequence[Sequence[Replay]]) -> Iterator[Replay]:
    """`ways`: the claims of one replay for each of its tables."""
    claims = [claim for way in ways for claim in way]
    open_ = [claim for claim in claims if claim.taken_at is None]
    moments = [claim.taken_at for claim in claims if claim.taken_at is not None]
    # Each claim of a table tells the counts of all.
    firsts = [way[0] for way in ways]
    whole = replace(
        (open_ or claims)[0],
        taken_at=max(moments, default=None),
        is_half=bool(moments) and (bool(open_) or any(claim.is_half for claim in claims)),
        rows_loaded=sum(first.rows_loaded for first in firsts),
        rows_rejected=sum(first.rows_rejected for first in firsts),
        rows_filtered=sum(first.rows_filtered for first in firsts),
        rows_added=None,
    )
    for action in ("load", "drop"):
        for first, last in union(sorted((own.first, own.last) for own in claims if own.action == action)):
            yield replace(whole, first=first, last=last, action=action)
