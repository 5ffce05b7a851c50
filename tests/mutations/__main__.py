"""Mutations of the product, and which tests catch them: `python -m tests.mutations COMMAND`. TESTING.md says how."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from tests.mutations import mutation_set
from tests.mutations.links import write_links
from tests.mutations.mutation_set import Mutation
from tests.mutations.run import Runner, read_catchers
from tests.mutations.table import write_table
from tests.mutations.tree import ROOT, WORK, build, locate, make_sources


def main() -> None:
    """Does what the arguments say."""
    options = _parser().parse_args()
    match options.command:
        case "draw":
            # Needs tree-sitter, which is in no other environment than `.venv-mutations`.
            from tests.mutations.draw import draw

            draw(options.seed, options.per_area, options.reserve)
        case "check":
            gone = [item for item in mutation_set.load() if locate(ROOT, item)[1] is None]
            _print_gone(gone)
        case "tree":
            _make_tree(WORK / options.name, options.product.resolve(), options.tests)
        case "links":
            options.scratch.mkdir(parents=True, exist_ok=True)
            only = frozenset(read_catchers(options.only).values()) if options.only else None
            write_links(WORK / options.name, options.scratch, only)
        case "run":
            options.scratch.mkdir(parents=True, exist_ok=True)
            tree = WORK / options.name
            gone_numbers = json.loads((tree / "gone.json").read_text())
            mutations = [item for item in mutation_set.load() if options.only in (None, item.number)]
            gone = [item for item in mutations if item.number in gone_numbers]
            runner = Runner(tree, options.scratch, options.most_seconds, read_catchers(options.first))
            runner.all(mutations, gone, options.output)
        case "table":
            write_table()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    draw = commands.add_parser("draw", help="draw set.json anew")
    draw.add_argument("--seed", type=int, default=34)
    draw.add_argument("--per-area", type=int, default=14)
    draw.add_argument("--reserve", type=int, default=14, help="drawn besides, for those that do not compile")
    commands.add_parser("check", help="list mutations whose text the sources no longer have")
    tree = commands.add_parser("tree", help="make and compile the product with all mutations in it")
    tree.add_argument("--product", type=Path, default=ROOT, help="a checkout whose code is mutated")
    tree.add_argument("--tests", type=Path, help="a checkout whose tests are run; its own if left out")
    links = commands.add_parser("links", help="run every test once, and note which mutations it reaches")
    run = commands.add_parser("run", help="activate each mutation, and run the tests that reach it")
    run.add_argument("--output", type=Path, required=True, help="lines of JSON; those that are there are not run again")
    run.add_argument("--most-seconds", type=float, default=float("inf"), help="of tests of pytest, for each mutation")
    links.add_argument("--only", type=Path, help="results: only the tests that caught a mutation there")
    run.add_argument("--only", type=int, help="number of a mutation")
    run.add_argument("--first", type=Path, help="results: the test that caught a mutation there is tried first")
    for command in (tree, links, run):
        command.add_argument("--name", default="new", help="of the tree below target/mutations")
    for command in (links, run):
        scratch = Path(tempfile.gettempdir()) / "headrace-mutations"
        command.add_argument("--scratch", type=Path, default=scratch, help="folder for the files of tests")
    commands.add_parser("table", help="write docs/contributing/mutations.md")
    return parser


def _make_tree(tree: Path, product: Path, tests: Path | None) -> None:
    # What was compiled and installed stays; what was linked was linked to other sources.
    for path in tree.iterdir() if tree.exists() else ():
        if path.name != ".venv-ci":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    tree.mkdir(parents=True, exist_ok=True)
    _, gone = make_sources(tree, product, (tests or product).resolve(), mutation_set.load())
    (tree / "gone.json").write_text(json.dumps([mutation.number for mutation in gone]))
    _print_gone(gone)
    build(tree)


def _print_gone(gone: list[Mutation]) -> None:
    for mutation in gone:
        print(f"gone: {mutation.number} {mutation.file}:{mutation.line}: {mutation.original}")
    print(f"{len(gone)} mutations are gone")


if __name__ == "__main__":
    main()
