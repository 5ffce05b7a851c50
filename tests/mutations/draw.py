"""Draws a set of mutations by a seed, and replaces those that do not compile."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.mutations.areas import AREAS, files_of_areas
from tests.mutations.mutation_set import Mutation, save
from tests.mutations.rust_sites import rust_sites
from tests.mutations.sites import Site, python_sites
from tests.mutations.tree import ROOT, WORK, CompileError, Spans, add_mutations, build_environment, cargo, make_sources

# A file with many sites must not be the whole area.
_MOST_PER_FILE = 4


def draw(seed: int, per_area: int, reserve: int) -> None:
    """Writes `set.json`: `per_area` mutations of each area, the first ones drawn that compile."""
    drawn = list(_drawn(seed, per_area + reserve))
    compiling = _that_compile(drawn)
    chosen = list[Mutation]()
    for area in AREAS:
        of_area = [mutation for mutation in compiling if mutation.area == area][:per_area]
        assert len(of_area) == per_area, f"only {len(of_area)} mutations of {area} compile: draw with more --reserve"
        chosen += of_area
    save([replace(mutation, number=number) for number, mutation in enumerate(chosen, start=1)], seed)


def _drawn(seed: int, per_area: int) -> Iterator[Mutation]:
    number = 0
    files = files_of_areas(ROOT)
    for area in AREAS:
        chance = random.Random(f"{seed} {area}")
        by_kind: defaultdict[str, list[tuple[str, Site]]] = defaultdict(list)
        for file in (file for file, own in files.items() if own == area):
            source = (ROOT / file).read_bytes()
            for site in rust_sites(source) if file.endswith(".rs") else python_sites(source):
                by_kind[site.kind].append((file, site))
        taken: defaultdict[str, list[Site]] = defaultdict(list)
        count = 0
        while count < per_area and by_kind:
            # By kind first: integers and conditions are many more than all others.
            kind = chance.choice(sorted(by_kind))
            file, site = by_kind[kind].pop(chance.randrange(len(by_kind[kind])))
            if not by_kind[kind]:
                del by_kind[kind]
            if len(taken[file]) == _MOST_PER_FILE or any(site.overlaps(other) for other in taken[file]):
                continue
            taken[file].append(site)
            count += 1
            number += 1
            yield Mutation.from_site(number, area, file, (ROOT / file).read_bytes(), site)


def _that_compile(mutations: Sequence[Mutation]) -> list[Mutation]:
    tree = WORK / "draw"
    shutil.rmtree(tree, ignore_errors=True)
    left = list(mutations)
    spans, gone = make_sources(tree, ROOT, ROOT, left)
    assert not gone
    environment = {**build_environment(tree), "PYO3_PYTHON": sys.executable, "PWD": os.fspath(tree)}
    while True:
        try:
            cargo(tree, ["check", "--workspace", "--profile", "dev"], environment)
        except CompileError as error:
            refused = {number for message in error.errors for number in _numbers(message, spans)}
            if not refused:
                raise
            kinds = Counter(mutation.kind for mutation in left if mutation.number in refused)
            print("do not compile:", ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())), flush=True)
            left = [mutation for mutation in left if mutation.number not in refused]
            spans, _ = add_mutations(tree, ROOT, left)
            _restore_those_without(tree, mutations, left)
        else:
            return left


def _numbers(message: dict[str, Any], spans: Spans) -> set[int]:
    """The mutations that an error is about: those that its primary spans touch, or else its other ones."""
    for primary in (True, False):
        touched = {
            number
            for span in message["spans"]
            if span["is_primary"] is primary
            for number, (start, end) in spans.get(span["file_name"], {}).items()
            if span["byte_start"] < end and start < span["byte_end"]
        }
        if touched:
            return touched
    return set()


def _restore_those_without(tree: Path, drawn: Sequence[Mutation], left: Sequence[Mutation]) -> None:
    for file in {mutation.file for mutation in drawn} - {mutation.file for mutation in left}:
        shutil.copy(ROOT / file, tree / file)
