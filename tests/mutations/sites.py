"""Places in Python sources that can be mutated, and what a site is in both languages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

# What an operator becomes. Boundaries come first: they are the mistakes that people make.
OPERATORS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "/", "/": "*",
    "//": "*", "%": "+", "&": "|", "|": "&", "<<": ">>", ">>": "<<", "&&": "||", "||": "&&", "and": "or", "or": "and",
    "in": "not in", "not in": "in", "is": "is not", "is not": "is",
}  # fmt: skip
COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!=", "in", "not in", "is", "is not"})
LOGICAL = frozenset({"and", "or", "&&", "||"})


@dataclass(frozen=True)
class Site:
    """A span of bytes in a source, and the text that replaces it. `statement`: the text is a statement to leave out."""

    start: int
    end: int
    kind: str
    mutated: str
    statement: bool = False

    def overlaps(self, other: Site) -> bool:
        """Whether both have a byte in common."""
        return self.start < other.end and other.start < self.end


def kind_of_operator(operator: str) -> str:
    """The name that a mutation of this operator has."""
    return "comparison" if operator in COMPARISONS else "logical" if operator in LOGICAL else "arithmetic"


def python_sites(source: bytes) -> list[Site]:
    """All sites in the bodies of functions of a Python module."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    return finder.sites


_COMPARISON_WORDS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip
_ARITHMETIC_WORDS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&", ast.BitOr: "|",
}  # fmt: skip


class _Finder(ast.NodeVisitor):
    def __init__(self, source: bytes) -> None:
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._in_function = False
        self.sites: list[Site] = []

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Only the body: defaults, decorators and annotations run when the module is imported.

        A cached function runs once per process, so that only one of its tests would be seen to reach it.
        """
        if any("cache" in ast.unparse(decorator) for decorator in node.decorator_list):
            return
        outer, self._in_function = self._in_function, True
        for statement in node.body:
            self.visit(statement)
        self._in_function = outer

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Methods, and nothing else of a class."""
        outer, self._in_function = self._in_function, False
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.visit(statement)
        self._in_function = outer

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Without the annotation."""
        if node.value is not None:
            self.visit(node.value)

    def visit_match_case(self, node: ast.match_case) -> None:
        """Without the pattern."""
        for part in [node.guard, *node.body]:
            if part is not None:
                self.visit(part)

    def generic_visit(self, node: ast.AST) -> None:
        """Adds the sites of a node, then those below it."""
        # Assertions tell mypy what it cannot know. Before Python 3.12 nodes in f-strings have no place.
        if isinstance(node, ast.Assert | ast.JoinedStr):
            return
        if self._in_function:
            for site in self._sites(node):
                # Both are names or waits of the whole function, not values of the expression alone.
                if not any(isinstance(part, ast.NamedExpr | ast.Yield | ast.YieldFrom) for part in ast.walk(node)):
                    self.sites.append(site)
        super().generic_visit(node)

    def _sites(self, node: ast.AST) -> Iterator[Site]:
        yield from self._of_statement(node) if isinstance(node, ast.stmt) else self._of_value(node)

    def _of_value(self, node: ast.AST) -> Iterator[Site]:
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                yield from self._operator(node, left, right, _COMPARISON_WORDS[type(operator)])
            case ast.BoolOp(op=operator, values=[left, right, *_]):
                yield from self._operator(node, left, right, "and" if isinstance(operator, ast.And) else "or")
            case ast.BinOp(left=left, right=right, op=operator) if type(operator) in _ARITHMETIC_WORDS:
                if not any(isinstance(part, ast.JoinedStr | ast.Constant) and _is_text(part) for part in (left, right)):
                    yield from self._operator(node, left, right, _ARITHMETIC_WORDS[type(operator)])
            case ast.UnaryOp(op=ast.Not()):
                yield self._site(node, "negation", self._text(node).removeprefix("not").strip())
            case ast.Constant(value=bool() as value):
                yield self._site(node, "boolean", str(not value))
            case ast.Constant(value=int() as number):
                yield self._site(node, "integer", str(number + 1))
            case ast.IfExp(test=test):
                yield self._site(test, "condition", "True")
                yield self._site(test, "condition", "False")
            case ast.comprehension(ifs=[test, *_]):
                yield self._site(test, "condition", "True")
            case _:
                pass

    def _of_statement(self, node: ast.stmt) -> Iterator[Site]:
        match node:
            case ast.If(test=test):
                yield self._site(test, "condition", "True")
                yield self._site(test, "condition", "False")
            case ast.While(test=test) if not isinstance(test, ast.Constant):
                yield self._site(test, "condition", "False")
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield self._site(value, "return", "None")
            case ast.Expr(value=ast.Call() as call):
                yield self._site(call, "statement", "None")
            case _:
                pass

    def _operator(self, node: ast.expr, left: ast.expr, right: ast.expr, operator: str) -> Iterator[Site]:
        start, end = self._span(node)
        left_end, right_start = self._span(left)[1], self._span(right)[0]
        between = self._source[left_end:right_start].decode()
        pattern = r"\s+".join(map(re.escape, operator.split()))
        changed, count = re.subn(pattern, OPERATORS[operator], between)
        mutated = (self._source[start:left_end].decode(), changed, self._source[right_start:end].decode())
        if count == 1:
            yield Site(start, end, kind_of_operator(operator), "".join(mutated))

    def _site(self, node: ast.expr, kind: str, mutated: str) -> Site:
        return Site(*self._span(node), kind, mutated)

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self._source[start:end].decode()


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
