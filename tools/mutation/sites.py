"""Where a source text can be changed by one token, and what it then says.

Places are found in the syntax tree; a change is an edit of one line of the text. Left alone are
docstrings, annotations, decorators, f-strings, ``__repr__``, what is raised, warned or logged,
and what only a type checker reads.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

KINDS = (
    "sign",
    "product",
    "comparison",
    "off-by-one",
    "transpose",
    "dropped",
    "swapped",
    "boolean",
    "constant",
    "extreme",
    "average",
    "function",
)

_SIGN = {ast.Add: ("+", "-"), ast.Sub: ("-", "+")}
_PRODUCT = {ast.Mult: ("*", "/"), ast.Div: ("/", "*")}
_DROPPED = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARED: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">")),
    ast.LtE: ("<=", ("<", ">=")),
    ast.Gt: (">", (">=", "<")),
    ast.GtE: (">=", (">", "<=")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
}


def _both_ways(*pairs: tuple[str, str]) -> dict[str, str]:
    return {a: b for pair in pairs for a, b in (pair, pair[::-1])}


_EXTREME = _both_ways(
    ("min", "max"),
    ("minimum", "maximum"),
    ("fmin", "fmax"),
    ("argmin", "argmax"),
    ("nanmin", "nanmax"),
    ("nanargmin", "nanargmax"),
)
_AVERAGE = _both_ways(("sum", "mean"), ("nansum", "nanmean"), ("var", "std"))
_FUNCTION = _both_ways(
    ("log", "log1p"),
    ("exp", "expm1"),
    ("floor", "ceil"),
    ("sin", "cos"),
    ("zeros", "ones"),
    ("zeros_like", "ones_like"),
    ("any", "all"),
    ("cumsum", "cumprod"),
)
_BUILT_IN = {"min", "max", "any", "all"}  # the only ones of these that are called by a bare name
# the order of two arguments says nothing, or only the interpreter cares
_NOT_SWAPPED = {
    "min", "max", "minimum", "maximum", "fmin", "fmax", "logaddexp", "hypot", "gcd", "lcm",
    "isclose", "allclose", "array_equal", "union1d", "intersect1d", "beta", "betaln", "logical_and",
    "logical_or", "add", "multiply", "isinstance", "issubclass", "getattr", "hasattr", "setattr",
    "__setattr__", "cast", "TypeVar", "print", "open",
}  # fmt: skip
_TELLING = {"warn", "debug", "info", "warning", "error", "exception", "critical"}
_SHOWN = {
    "__repr__",
    "__str__",
    "__format__",
    "_repr_html_",
    "_repr_mimebundle_",
    "__sklearn_tags__",
}
_TEXT_OR_LIST = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp, ast.Dict, ast.Set)


@dataclass(frozen=True)
class Mutant:
    """One change of one line: ``text[start:end]`` becomes ``new``."""

    file: str
    line: int
    column: int
    start: int
    end: int
    kind: str
    old: str
    new: str
    before: str
    after: str

    @property
    def id(self) -> str:
        parts = (self.file, self.line, self.column, self.kind, self.old, self.new)
        return hashlib.sha1("\0".join(map(str, parts)).encode()).hexdigest()[:10]

    def applied(self, text: str) -> str:
        if text[self.start : self.end] != self.old:
            raise ValueError(f"{self.file} is not the text in which mutant {self.id} was found")
        return text[: self.start] + self.new + text[self.end :]

    def diff(self) -> str:
        return f"--- {self.file}:{self.line}\n- {self.before.strip()}\n+ {self.after.strip()}"


class Source:
    """A text with its syntax tree and its tokens, all placed by characters from its start."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        self.tree = ast.parse(text)
        self._lines = text.splitlines(keepends=True)
        self._begins = [0]
        for line in self._lines:
            self._begins.append(self._begins[-1] + len(line))
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        self._tokens = [(self._begins[t.start[0] - 1] + t.start[1], t.string) for t in tokens]

    def offset(self, line: int, column: int) -> int:
        """Of a place in the tree, whose columns count bytes."""
        content = self._lines[line - 1]
        if content.isascii():
            return self._begins[line - 1] + column
        return self._begins[line - 1] + len(content.encode()[:column].decode())

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self.offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.offset(node.end_lineno, node.end_col_offset)

    def segment(self, node: ast.expr) -> str:
        return self.text[self.start(node) : self.end(node)]

    def token(self, string: str, begin: int, end: int) -> int | None:
        """Where the token stands first between two places."""
        at = bisect_left(self._tokens, (begin, ""))
        while at < len(self._tokens) and self._tokens[at][0] < end:
            if self._tokens[at][1] == string:
                return self._tokens[at][0]
            at += 1
        return None

    def mutant(self, kind: str, start: int, end: int, new: str) -> Mutant | None:
        """None if it spans lines or changes nothing."""
        old = self.text[start:end]
        if "\n" in old or "\n" in new or old == new:
            return None
        line = bisect_left(self._begins, start + 1)
        begin = self._begins[line - 1]
        before = self._lines[line - 1].rstrip("\n")
        after = before[: start - begin] + new + before[end - begin :]
        return Mutant(self.file, line, start - begin, start, end, kind, old, new, before, after)


def is_valid(mutant: Mutant, text: str) -> bool:
    """It is Python, and another program."""
    mutated = mutant.applied(text)
    try:
        changed = ast.parse(mutated)
        compile(mutated, mutant.file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return ast.dump(changed) != ast.dump(ast.parse(text))


Edit = tuple[str, int, int, str]


def mutants(file: str, text: str) -> list[Mutant]:
    """All changes of a text, in the order of their places; a few may not be valid.

    Examples
    --------
    >>> [m.after for m in mutants("f.py", "y = a * b") if m.kind == "product"]
    ['y = a / b']
    """
    source = Source(file, text)
    found: dict[tuple[int, int, str], Mutant] = {}
    for kind, start, end, new in _edits(source):
        made = source.mutant(kind, start, end, new)
        if made is not None:
            found.setdefault((start, end, new), made)
    return sorted(found.values(), key=lambda m: (m.start, m.end, m.kind, m.new))


def _edits(source: Source) -> Iterator[Edit]:
    for node, parent in _live(source.tree, None):
        if isinstance(node, ast.BinOp):
            yield from _arithmetic(source, node)
        elif isinstance(node, ast.AugAssign):
            yield from _in_place(source, node)
        elif isinstance(node, ast.UnaryOp):
            yield from _prefixed(source, node)
        elif isinstance(node, ast.Compare):
            yield from _comparisons(source, node)
        elif isinstance(node, ast.BoolOp):
            yield from _joined(source, node)
        elif isinstance(node, ast.Constant):
            yield from _numbers(source, node, parent)
        elif isinstance(node, ast.Subscript):
            yield from _subscripts(source, node)
        elif isinstance(node, ast.Attribute):
            yield from _attributes(source, node)
        elif isinstance(node, ast.Call):
            yield from _calls(source, node)


# ------------------------------------------------ what is left alone


def _live(node: ast.AST, parent: ast.AST | None) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """Every node that the running program computes with, and its parent."""
    if _left_alone(node):
        return
    yield node, parent
    for child in _children(node):
        yield from _live(child, node)


def _left_alone(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name in _SHOWN
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.dump(node.test)
    if isinstance(node, ast.Call):
        name = _name(node.func)
        if name.endswith(("Error", "Warning")) or name == "TypeVar":
            return True
        return isinstance(node.func, ast.Attribute) and name in _TELLING
    return False


def _children(node: ast.AST) -> Iterator[ast.AST]:
    skipped: list[ast.AST] = []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        skipped = [*node.decorator_list]
        skipped += [node.returns] if node.returns else []
    elif isinstance(node, ast.ClassDef):
        skipped = [*node.decorator_list, *node.bases]
    elif isinstance(node, ast.arg | ast.AnnAssign):
        skipped = [node.annotation] if node.annotation else []
    elif isinstance(node, ast.Assert) and node.msg:
        skipped = [node.msg]
    elif isinstance(node, ast.Call) and _name(node.func) == "cast":
        skipped = [*node.args[:1]]
    for child in ast.iter_child_nodes(node):
        if not any(child is other for other in skipped):
            yield child


def _name(node: ast.expr) -> str:
    """The last part of a dotted name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_text_or_list(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | bytes)
    return isinstance(node, _TEXT_OR_LIST)


# ------------------------------------------------ operators


def _arithmetic(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    if _is_text_or_list(node.left) or _is_text_or_list(node.right):
        return
    start, end = source.start(node), source.end(node)
    gap = source.end(node.left), source.start(node.right)
    for kind, table in (("sign", _SIGN), ("product", _PRODUCT)):
        if type(node.op) in table:
            old, new = table[type(node.op)]
            at = source.token(old, *gap)
            if at is not None:
                yield kind, at, at + 1, new
    if type(node.op) in _DROPPED:
        at = source.token(_DROPPED[type(node.op)], *gap)
        if at is not None:
            yield "dropped", start, end, source.text[start:at].rstrip()
            if isinstance(node.op, ast.Add | ast.Mult):
                yield "dropped", start, end, source.text[at + 1 : end].lstrip()
    if isinstance(node.op, ast.MatMult):
        yield from _products_of_matrices(source, node)


def _products_of_matrices(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    start, end = source.start(node), source.end(node)
    at = source.token("@", source.end(node.left), source.start(node.right))
    if at is None:
        return
    left, right = source.text[start:at].rstrip(), source.text[at + 1 : end].lstrip()
    if isinstance(node.left, ast.BinOp | ast.UnaryOp):
        left = f"({left})"
    yield "transpose", start, end, f"{right} @ {left}"
    for operand in (node.left, node.right):
        plain = isinstance(operand, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
        if plain and not (isinstance(operand, ast.Attribute) and operand.attr == "T"):
            yield "transpose", source.end(operand), source.end(operand), ".T"


def _in_place(source: Source, node: ast.AugAssign) -> Iterator[Edit]:
    gap = source.end(node.target), source.start(node.value)
    if _is_text_or_list(node.value):
        return
    for kind, table in (("sign", _SIGN), ("product", _PRODUCT)):
        if type(node.op) in table:
            old, new = table[type(node.op)]
            at = source.token(f"{old}=", *gap)
            if at is not None:
                yield kind, at, at + 2, f"{new}="
                yield "dropped", at, at + 2, "="


def _prefixed(source: Source, node: ast.UnaryOp) -> Iterator[Edit]:
    start, inner = source.start(node), source.start(node.operand)
    if isinstance(node.op, ast.USub):
        yield "sign", start, start + 1, ""
    elif isinstance(node.op, ast.Not):
        brackets = source.text[start + 3 : inner].lstrip()  # before the operand
        yield "boolean", start, inner, brackets


def _comparisons(source: Source, node: ast.Compare) -> Iterator[Edit]:
    operands = [node.left, *node.comparators]
    for k, operator in enumerate(node.ops):
        if type(operator) not in _COMPARED:
            continue
        old, others = _COMPARED[type(operator)]
        at = source.token(old, source.end(operands[k]), source.start(operands[k + 1]))
        if at is not None:
            for new in others:
                yield "comparison", at, at + len(old), new


def _joined(source: Source, node: ast.BoolOp) -> Iterator[Edit]:
    old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    for left, right in zip(node.values, node.values[1:], strict=False):
        at = source.token(old, source.end(left), source.start(right))
        if at is not None:
            yield "boolean", at, at + len(old), new


# ------------------------------------------------ numbers and bounds


def _numbers(source: Source, node: ast.Constant, parent: ast.AST | None) -> Iterator[Edit]:
    value, place = node.value, (source.start(node), source.end(node))
    if isinstance(value, float):
        for new in _other_floats(value):
            yield "constant", *place, new
    elif isinstance(value, int) and not isinstance(value, bool):
        if isinstance(parent, ast.keyword) and parent.arg == "axis":
            if value in (0, 1):
                yield "off-by-one", *place, str(1 - value)
        elif value == 2 and isinstance(parent, ast.BinOp):
            yield "constant", *place, "1"
        else:
            yield "off-by-one", *place, str(value + 1)
            if value > 0:
                yield "off-by-one", *place, str(value - 1)


def _other_floats(value: float) -> list[str]:
    if value == 0.5:
        return ["0.25", "1.0"]
    if value in (0.0, 2.0):
        return ["1.0"]
    # not tolerances and not infinity: twice as much of these changes no result that is tested
    return [repr(2 * value)] if 1e-3 <= abs(value) <= 1e3 else []


def _subscripts(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for part in parts:
        if isinstance(part, ast.Slice):
            for bound in (part.lower, part.upper):
                if bound is not None:
                    yield from _shifted(source, bound)
        elif isinstance(part, ast.Name) and len(part.id) == 1 and part.id.islower():
            yield from _shifted(source, part)


def _shifted(source: Source, bound: ast.expr) -> Iterator[Edit]:
    if isinstance(bound, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        end = source.end(bound)
        yield "off-by-one", end, end, " + 1"
        yield "off-by-one", end, end, " - 1"


# ------------------------------------------------ attributes and calls


def _attributes(source: Source, node: ast.Attribute) -> Iterator[Edit]:
    if node.attr == "T":
        end = source.end(node)
        at = source.text.rfind(".", 0, end)
        yield "transpose", at, end, ""


def _calls(source: Source, node: ast.Call) -> Iterator[Edit]:
    name, end = _name(node.func), source.end(node.func)
    tables = (("extreme", _EXTREME), ("average", _AVERAGE), ("function", _FUNCTION))
    for kind, table in tables:
        if name in table and (isinstance(node.func, ast.Attribute) or name in _BUILT_IN):
            yield kind, end - len(name), end, table[name]
    if name == "range":
        for bound in node.args[:2]:
            yield from _shifted(source, bound)
    first_two = node.args[:2]
    if len(first_two) == 2 and name not in _NOT_SWAPPED:
        a, b = first_two
        if not isinstance(a, ast.Starred) and not isinstance(b, ast.Starred):
            between = source.text[source.end(a) : source.start(b)]
            new = source.segment(b) + between + source.segment(a)
            yield "swapped", source.start(a), source.end(b), new
