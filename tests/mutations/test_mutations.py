"""Finding, storing and splicing of mutations; nothing is compiled."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutations.areas import AREAS
from tests.mutations.links import Test
from tests.mutations.mutation_set import Mutation, load, splice
from tests.mutations.run import read_catchers, stages
from tests.mutations.sites import python_sites

SOURCE = b'''"""A module."""
LIMIT = 3

@cache
def once(): return 1 + 1

def f(a: "int | None", b=1 < 2) -> int:
    """A function with 1 number."""
    assert a is not None
    if (a) < (
        b
    ) and not b:
        print(f"{a + 1}", True)
    text = "a" + a
    return a if a else b
'''


def texts() -> set[tuple[str, str, str]]:
    return {(site.kind, SOURCE[site.start : site.end].decode(), site.mutated) for site in python_sites(SOURCE)}


def test_sites_are_in_the_bodies_of_functions() -> None:
    found = texts()
    assert {item for item in found if "\n" not in item[1]} == {
        ("negation", "not b", "b"),
        ("statement", 'print(f"{a + 1}", True)', "None"),
        ("boolean", "True", "False"),
        ("return", "a if a else b", "None"),
        ("condition", "a", "True"),
        ("condition", "a", "False"),
    }
    assert {item[::2] for item in found if "\n" in item[1]} == {
        ("comparison", "(a) <= (\n        b\n    )"),
        ("logical", "(a) < (\n        b\n    ) or not b"),
        ("condition", "True"),
        ("condition", "False"),
    }


def test_every_site_compiles_and_is_a_change() -> None:
    for number, site in enumerate(python_sites(SOURCE), start=1):
        mutation = Mutation.from_site(number, "planning", "module.py", SOURCE, site)
        assert mutation.original != mutation.mutated
        spliced, spans = splice(SOURCE, [(site.start, mutation)])
        compile(spliced, "module.py", "exec")
        start, end = spans[number]
        assert spliced[:start] + mutation.original.encode() + spliced[end:] == SOURCE


def mutation_of(text: bytes, source: bytes = SOURCE) -> Mutation:
    (site,) = [
        site for site in python_sites(source) if (site.kind, source[site.start : site.end]) == ("negation", text)
    ]
    return Mutation.from_site(7, "planning", "module.py", source, site)


def test_a_mutation_is_found_again_after_its_lines_have_moved() -> None:
    mutation = mutation_of(b"not b")
    moved = b"# A new line.\n" + SOURCE.replace(b"    ) and not", b"        ) and not")
    start = mutation.locate(moved)
    assert start is not None and moved[start:].startswith(b"not b:")


AGAIN = b"def f():\n    if (\n    ) and not b:\n        return\n\n\n"


@pytest.mark.parametrize("changed", [SOURCE.replace(b"not b", b"not a"), AGAIN + SOURCE])
def test_a_mutation_is_gone_if_its_lines_are_changed_or_there_are_more_of_them(changed: bytes) -> None:
    assert mutation_of(b"not b").locate(b"# A new line.\n" + changed) is None


def test_statements_of_rust_are_left_out_and_values_are_replaced() -> None:
    source = b"fn f() { g(); h(1) }"
    values = {"area": "parse", "file": "a.rs", "line": 1, "end_line": 1, "kind": "", "before": "", "after": ""}
    values |= {"occurrence": 0, "occurrences": 1}
    call = Mutation(1, column=9, end_column=13, original="g();", mutated="", statement=True, **values)  # type: ignore[arg-type]
    one = replace(call, number=2, column=16, end_column=17, original="1", mutated="1 + 1", statement=False)
    assert splice(source, [(16, one), (9, call)])[0].decode() == (
        "fn f() { if !headrace_mutants::active(1) { g(); } h((if headrace_mutants::active(2) { 1 + 1 } else { 1 })) }"
    )


def test_the_set_has_enough_of_every_area() -> None:
    mutations = load()
    assert [mutation.number for mutation in mutations] == list(range(1, len(mutations) + 1))
    counts = Counter(mutation.area for mutation in mutations)
    assert counts.keys() == AREAS.keys()
    assert min(counts.values()) >= 12


def test_tests_of_cargo_come_first_then_the_shortest_of_pytest_until_the_time_is_over() -> None:
    tests = [Test(f"p{seconds}", float(seconds), frozenset({1}), None, None) for seconds in (1, 20, 40, 60, 500)]
    tests += [Test(f"c{number}", 6.0, frozenset({1}), f"program{number % 2}", ".") for number in range(3)]
    names = [[test.name for test in stage] for stage in stages(tests, 130)]
    assert sorted(names[:3]) == [["c0"], ["c1"], ["c2"]]
    assert names[3:] == [["p1", "p20"], ["p40", "p60"]]


def test_the_test_that_caught_it_elsewhere_comes_first(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    lines = [{"number": 1, "by": "late"}, {"number": 2, "by": None}, {"number": 3, "by": "time limit"}]
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_catchers(results) == {1: "late"}
    assert read_catchers(None) == {}
    tests = [Test(name, 1.0, frozenset({1}), None, None) for name in ("early", "late")]
    names = [[test.name for test in stage] for stage in stages(tests, 130, "late")]
    assert names == [["late"], ["early"]]


def test_the_switch_notes_what_runs_and_is_on_for_one_mutation(tmp_path: Path) -> None:
    hits = tmp_path / "hits"
    hits.write_bytes(bytes(4096))
    code = "import headrace_mutants as m; print([m.active(number) for number in (3, 5)])"
    runtime = Path(__file__).parent / "runtime"
    variables = {"PYTHONPATH": str(runtime), "HEADRACE_MUTANT": "5", "HEADRACE_MUTANT_HITS": str(hits)}
    ended = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert ended.stdout == "[False, True]\n"
    assert [number for number, byte in enumerate(hits.read_bytes()) if byte] == [3, 5]
