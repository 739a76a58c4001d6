"""Mutants of Python, found in the syntax tree."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

from mutation.edit import Edit

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
# What makes a sum one of sequences, whose order matters; that of numbers does not.
_SEQUENCES = (ast.Tuple, ast.List, ast.ListComp, ast.JoinedStr)
_LEAVES = (ast.Raise, ast.Return, ast.Continue, ast.Break)


def edits(text: str) -> Iterator[Edit]:
    """All changes that the rules make."""
    tree = ast.parse(text)
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = text.splitlines()

    def place(line: int, column: int) -> int:
        # Columns count bytes.
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def changed(node: Any, new: Any, rule: str) -> Edit:
        begin = place(node.lineno, node.col_offset)
        end = place(node.end_lineno, node.end_col_offset)
        unparsed = ast.unparse(new)
        simple = isinstance(new, ast.Constant | ast.Call | ast.Name)
        return Edit(begin, end, unparsed if simple else f"({unparsed})", rule)

    first = {
        id(node.slice)
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "0"
    }
    for node in _run_nodes(tree):
        for new, rule in _variants(node):
            # Of a sequence of one the first element is the last.
            if id(node) in first and isinstance(new, ast.Constant) and new.value == -1:
                continue
            yield changed(node, new, rule)
        if isinstance(node, ast.If | ast.IfExp):
            for new, rule in _checks(node):
                yield changed(node.test, new, rule)
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
            begin = place(node.target.end_lineno or 0, node.target.end_col_offset or 0)
            end = place(node.value.lineno, node.value.col_offset)
            add = isinstance(node.op, ast.Add)
            at = text.find("+=" if add else "-=", begin, end)
            yield Edit(at, at + 2, "-=" if add else "+=", "arithmetic")
            yield Edit(at, at + 2, "=", "arithmetic")


def _run_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """What is evaluated when the code runs: no annotations, and no texts of messages."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Assign) and "__all__" in ast.unparse(child.targets[0]):
                continue
            if "overload" in map(ast.unparse, getattr(child, "decorator_list", ())):
                continue  # for type checkers
            yield child
            yield from _run_nodes(child)


def _variants(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    if isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            new = copy.deepcopy(node)
            new.ops[number] = _COMPARISONS[type(operator)]()
            yield new, "comparison"
    elif isinstance(node, ast.BoolOp):
        new_bool = copy.deepcopy(node)
        new_bool.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield new_bool, "logic"
        for number in range(len(node.values)):
            rest = [value for n, value in enumerate(node.values) if n != number]
            yield (
                rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest),
                "dropped condition",
            )
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield ast.BinOp(node.left, other, node.right), "arithmetic"
        if isinstance(node.op, ast.Sub) or any(map(_is_sequence, (node.left, node.right))):
            yield ast.BinOp(node.right, node.op, node.left), "swapped operands"
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.Constant(node.value + 1), "off by one"
        yield ast.Constant(node.value - 1), "off by one"
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in ("min", "max"):
            name = ast.Name("max" if node.func.id == "min" else "min")
            yield ast.Call(name, node.args, node.keywords), "min and max"
        elif node.func.id not in ("isinstance", "getattr", "setattr", "has_no_memory"):
            for number in range(len(node.args) - 1):
                pair = node.args[number : number + 2]
                names = {value.id for value in pair if isinstance(value, ast.Name)}
                if len(names) == 2:
                    args = [*node.args[:number], pair[1], pair[0], *node.args[number + 2 :]]
                    yield ast.Call(node.func, args, node.keywords), "swapped operands"


def _is_sequence(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_sequence(node.left) or _is_sequence(node.right)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | bytes)
    sliced = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
    return sliced or isinstance(node, _SEQUENCES)


def _checks(node: ast.If | ast.IfExp) -> Iterator[tuple[ast.AST, str]]:
    if isinstance(node, ast.IfExp):
        yield ast.Constant(True), "dropped check"
        yield ast.Constant(False), "dropped check"
        return
    last = node.body[-1]
    yields = isinstance(last, ast.Expr) and isinstance(last.value, ast.Yield | ast.YieldFrom)
    if isinstance(last, _LEAVES) or yields:
        yield ast.Constant(False), "dropped check"
