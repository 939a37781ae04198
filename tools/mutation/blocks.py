"""The pieces of a file whose running is recorded: the body of a function, a branch, a loop.

A call that records the piece is put in front of each when the file is imported. Functions that
numba compiles are left as they are: no Python runs in them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

HIT = "__mutants_hit__"
_COMPILING = {
    "kernel", "summing_kernel", "njit", "jit", "vectorize", "guvectorize", "cfunc", "overload",
    "overload_method", "overload_attribute", "intrinsic",
}  # fmt: skip
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Block:
    """Statements that run one after the other; the first of a function stand for all of it."""

    file: str
    function: str
    start: tuple[int, int]
    end: tuple[int, int]


def is_compiled(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """By numba, as its decorators tell."""
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in _COMPILING:
            return True
    return False


def knows_numba(tree: ast.Module) -> bool:
    """Such a file may have undecorated functions that are compiled."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.append(node.module or "")
    return any(name.split(".")[0] == "numba" for name in names)


def blocks(file: str, tree: ast.Module) -> list[Block]:
    return [
        Block(file, function, _start(body[0]), _end(body[-1])) for function, body in _bodies(tree)
    ]


def instrumented(tree: ast.Module, first: int) -> ast.Module:
    """The same program that calls ``__mutants_hit__(first + k)`` when it enters block k."""
    for k, (_, body) in enumerate(list(_bodies(tree))):
        call = ast.Expr(ast.Call(ast.Name(HIT, ast.Load()), [ast.Constant(first + k)], []))
        has_docstring = (
            isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
            and isinstance(body[0].value.value, str)
        )
        at = 1 if has_docstring else 0
        ast.copy_location(call, body[0])
        body.insert(at, ast.fix_missing_locations(call))
    return tree


def _bodies(tree: ast.Module) -> Iterator[tuple[str, list[ast.stmt]]]:
    """Function and statements of each block, outer blocks first."""
    if not knows_numba(tree):
        yield from _inside(tree, (), "")


def _inside(
    node: ast.AST, outer: tuple[str, ...], function: str
) -> Iterator[tuple[str, list[ast.stmt]]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Function):
            if not is_compiled(child):
                name = ".".join((*outer, child.name))
                yield name, child.body
                yield from _inside(child, (*outer, child.name), name)
        elif isinstance(child, ast.ClassDef):
            yield from _inside(child, (*outer, child.name), "")
        else:
            if function and not isinstance(child, ast.expr):
                yield from ((function, body) for body in _branches(child))
            yield from _inside(child, outer, function)


def _branches(node: ast.AST) -> Iterator[list[ast.stmt]]:
    if isinstance(node, ast.If | ast.For | ast.AsyncFor | ast.While):
        yield node.body
        if node.orelse:
            yield node.orelse
    elif isinstance(node, ast.ExceptHandler | ast.match_case):
        yield node.body
    elif isinstance(node, ast.Try) and node.orelse:
        yield node.orelse


def _start(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.stmt) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0
