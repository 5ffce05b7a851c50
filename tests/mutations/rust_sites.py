"""Places in Rust sources that can be mutated. Only `draw` needs this module, and tree-sitter with it."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter_rust
from tree_sitter import Language, Node, Parser

from tests.mutations.sites import OPERATORS, Site, kind_of_operator

# Nothing in these runs while a program does, or nothing in them can be an `if`.
_LEFT_OUT = frozenset({
    "array_type", "const_block", "const_item", "enum_item", "let_condition", "macro_definition", "macro_invocation",
    "match_pattern", "static_item", "struct_item", "type_arguments",
})  # fmt: skip
_STATEMENTS = frozenset({
    "assignment_expression", "break_expression", "call_expression", "compound_assignment_expr", "continue_expression",
    "return_expression", "try_expression",
})  # fmt: skip
_COMMENTS = frozenset({"block_comment", "line_comment"})


def rust_sites(source: bytes) -> list[Site]:
    """All sites in the bodies of functions of a Rust module, except those of tests."""
    parser = Parser(Language(tree_sitter_rust.language()))
    return list(_of_parts(parser.parse(source).root_node.children, in_function=False))


def _of_parts(parts: list[Node], *, in_function: bool) -> Iterator[Site]:
    left_out = False
    for part in parts:
        if part.type in {"attribute_item", "inner_attribute_item"}:
            # `#[test]`, `#[cfg(test)]`, and what only another machine compiles.
            left_out |= "test" in _text(part) or "aarch64" in _text(part)
        elif part.type not in _COMMENTS:
            if not left_out:
                yield from _of_node(part, in_function=in_function)
            left_out = False


def _of_node(node: Node, *, in_function: bool) -> Iterator[Site]:
    if node.type in _LEFT_OUT or node.type.endswith("_pattern") or _is_const(node):
        return
    if in_function:
        yield from _sites(node)
    parts = node.children
    if node.type == "let_declaration":
        fields = (node.child_by_field_name(name) for name in ("value", "alternative"))
        parts = [part for part in fields if part is not None]
    yield from _of_parts(parts, in_function=in_function or node.type == "function_item")


def _sites(node: Node) -> Iterator[Site]:
    match node.type:
        case "binary_expression":
            left, operator, right = (_field(node, name) for name in ("left", "operator", "right"))
            word = _text(operator)
            if word in OPERATORS and not _has_let(node):
                before, after = _between(node, left, operator), _between(node, operator, right)
                mutated = f"{_text(left)}{before}{OPERATORS[word]}{after}{_text(right)}"
                yield _site(node, kind_of_operator(word), mutated)
        case "unary_expression" if _text(node).startswith("!"):
            yield _site(node, "negation", _text(node)[1:])
        case "boolean_literal":
            yield _site(node, "boolean", "false" if _text(node) == "true" else "true")
        case "integer_literal" if node.parent is not None and node.parent.type != "field_expression":
            yield _site(node, "integer", f"{_text(node)} + 1")
        case "if_expression" if not _has_let(_field(node, "condition")):
            yield _site(_field(node, "condition"), "condition", "true")
            yield _site(_field(node, "condition"), "condition", "false")
        case "while_expression" if not _has_let(_field(node, "condition")):
            yield _site(_field(node, "condition"), "condition", "false")
        case "expression_statement" if node.children[0].type in _STATEMENTS and _text(node).endswith(";"):
            yield Site(node.start_byte, node.end_byte, "statement", "", statement=True)
        case _:
            pass


def _between(node: Node, left: Node, right: Node) -> str:
    text = _text(node).encode()
    return text[left.end_byte - node.start_byte : right.start_byte - node.start_byte].decode()


def _site(node: Node, kind: str, mutated: str) -> Site:
    return Site(node.start_byte, node.end_byte, kind, mutated)


def _field(node: Node, name: str) -> Node:
    field = node.child_by_field_name(name)
    assert field is not None, f"{node.type} has no {name}"
    return field


def _has_let(node: Node) -> bool:
    return node.type in {"let_chain", "let_condition"} or any(_has_let(part) for part in node.children)


def _is_const(node: Node) -> bool:
    modifiers = [part for part in node.children if part.type == "function_modifiers"]
    return node.type == "function_item" and any("const" in _text(part) for part in modifiers)


def _text(node: Node) -> str:
    assert node.text is not None
    return str(node.text, "utf-8")
