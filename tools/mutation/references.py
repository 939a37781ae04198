"""Which functions use what cannot be seen running: kernels, constants, bodies of classes.

A unit is a function, a method, the body of a class or a name assigned in a module. A unit that runs
as Python is seen by the recording; any other is followed to the units that mention it, until they
are. Mentions are read from the source: names, and attributes of imported modules.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from mutation.blocks import is_compiled, knows_numba

Unit = tuple[str, str]  # file, qualified name


@dataclass
class Reached:
    """What uses a unit: Python functions, compiled functions, and files outside the package."""

    functions: set[Unit] = field(default_factory=set)
    compiled: set[Unit] = field(default_factory=set)
    tests: set[str] = field(default_factory=set)


@dataclass
class _File:
    tree: ast.Module
    imported: dict[str, Unit]  # alias: file and name there
    modules: dict[str, str]  # alias: file
    uses: dict[str, set[Unit]] = field(default_factory=dict)
    compiled: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    spans: list[tuple[int, int, str]] = field(default_factory=list)


class References:
    """Of all files, given as {path: text}; ``src/package/room/file.py`` is package.room.file."""

    def __init__(self, texts: dict[str, str], package: str) -> None:
        self._package = package
        self._paths = {_module(path): path for path in texts if path.startswith("src/")}
        self._files: dict[str, _File] = {}
        for path, text in texts.items():
            tree = ast.parse(text)
            self._files[path] = _File(tree, *self._imports(tree, path))
        for path in self._files:
            self._read(path)
        self._users: dict[Unit, set[Unit]] = defaultdict(set)
        for path, file in self._files.items():
            for unit, used in file.uses.items():
                for target in used:
                    self._users[self._origin(target)].add((path, unit))

    def unit_at(self, path: str, line: int) -> str:
        """The innermost function, class or assignment that holds a line; '' is none of them."""
        inside = [s for s in self._files[path].spans if s[0] <= line <= s[1]]
        return max(inside, key=lambda s: (s[0], -s[1]))[2] if inside else ""

    def is_compiled(self, path: str, unit: str) -> bool:
        return unit in self._files[path].compiled

    def is_function(self, path: str, unit: str) -> bool:
        """That runs as Python."""
        file = self._files[path]
        return unit in file.functions and unit not in file.compiled

    def reach(self, path: str, unit: str) -> Reached:
        """What would notice a change of the unit without running it in Python."""
        found, seen = Reached(), {(path, unit)}
        queue = [(path, unit)]
        if self.is_compiled(path, unit):
            found.compiled.add((path, unit))
        while queue:
            file, name = queue.pop()
            users = set(self._users.get((file, name), ()))
            if name in self._files[file].classes:
                prefix = f"{name}."
                users |= {(file, f) for f in self._files[file].functions if f.startswith(prefix)}
            for user in users - seen:
                seen.add(user)
                if not user[0].startswith("src/"):
                    found.tests.add(user[0])
                elif self.is_function(*user):
                    found.functions.add(user)
                else:
                    if self.is_compiled(*user):
                        found.compiled.add(user)
                    queue.append(user)
        return found

    def importers(self, path: str) -> set[str]:
        """Files that import this one, directly or through others."""
        direct: dict[str, set[str]] = defaultdict(set)
        for other, file in self._files.items():
            sources = {source for source, _ in file.imported.values()} | set(file.modules.values())
            for source in sources:
                direct[source].add(other)
        found: set[str] = set()
        queue = [path]
        while queue:
            for other in direct[queue.pop()] - found:
                found.add(other)
                queue.append(other)
        return found - {path}

    # ------------------------------------------------ reading

    def _imports(self, tree: ast.Module, path: str) -> tuple[dict[str, Unit], dict[str, str]]:
        imported: dict[str, Unit] = {}
        modules: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.name if alias.asname else alias.name.split(".")[0]
                    if name in self._paths:
                        modules[alias.asname or name] = self._paths[name]
            elif isinstance(node, ast.ImportFrom):
                base = self._base(node, path)
                for alias in node.names:
                    inner = f"{base}.{alias.name}"
                    if inner in self._paths:
                        modules[alias.asname or alias.name] = self._paths[inner]
                    elif base in self._paths:
                        imported[alias.asname or alias.name] = self._paths[base], alias.name
        return imported, modules

    def _base(self, node: ast.ImportFrom, path: str) -> str:
        if not node.level:
            return node.module or ""
        parts = _module(path).split(".")
        keep = len(parts) - node.level + (1 if path.endswith("__init__.py") else 0)
        return ".".join([*parts[:keep], *([node.module] if node.module else [])])

    def _origin(self, unit: Unit) -> Unit:
        """Through files that only hand a name on."""
        for _ in range(9):
            file = self._files.get(unit[0])
            if file is None or unit[1] not in file.imported:
                return unit
            unit = file.imported[unit[1]]
        return unit

    def _read(self, path: str) -> None:
        file = self._files[path]
        numba = path.startswith("src/") and knows_numba(file.tree)
        for node in file.tree.body:
            self._unit(path, file, node, "", numba)

    def _unit(self, path: str, file: _File, node: ast.stmt, outer: str, compiled: bool) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name = outer + node.name
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            file.spans.append((first, node.end_lineno or 0, name))
            file.functions.add(name)
            used = self._mentions(path, file, [node])
            if compiled or is_compiled(node):
                file.compiled.add(name)
                # numba calls an overload wherever the function is called that it stands for
                for target in self._mentions(path, file, node.decorator_list):
                    if target[0] == path:
                        file.uses.setdefault(target[1], set()).add((path, name))
            file.uses.setdefault(name, set()).update(used)
        elif isinstance(node, ast.ClassDef):
            name = outer + node.name
            file.spans.append((node.lineno, node.end_lineno or 0, name))
            file.classes.add(name)
            plain = [*node.bases, *node.decorator_list, *node.keywords]
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    self._unit(path, file, inner, f"{name}.", compiled)
                else:
                    plain.append(inner)
            file.uses.setdefault(name, set()).update(self._mentions(path, file, plain))
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            for name in _assigned(node):
                file.spans.append((node.lineno, node.end_lineno or 0, name))
                file.uses.setdefault(name, set()).update(self._mentions(path, file, [node]))

    def _mentions(self, path: str, file: _File, nodes: Iterable[ast.AST]) -> set[Unit]:
        found: set[Unit] = set()
        for top in nodes:
            for node in ast.walk(top):
                if isinstance(node, ast.Name):
                    found.add(file.imported.get(node.id, (path, node.id)))
                elif isinstance(node, ast.Attribute):
                    module = self._module_of(file, node.value)
                    if module is not None:
                        found.add((module, node.attr))
        return found

    def _module_of(self, file: _File, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            return file.modules.get(node.id)
        if isinstance(node, ast.Attribute):
            outer = self._module_of(file, node.value)
            return None if outer is None else self._paths.get(f"{_module(outer)}.{node.attr}")
        return None


def _module(path: str) -> str:
    """``src/a/b/c.py`` is a.b.c."""
    name = path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__")
    return name.replace("/", ".")


def _assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    names = [n.id for t in targets if t for n in ast.walk(t) if isinstance(n, ast.Name)]
    if not names and isinstance(node, ast.If | ast.Try | ast.With | ast.For):
        names = [n for inner in ast.iter_child_nodes(node) if isinstance(inner, ast.stmt)
                 for n in _assigned(inner)]  # fmt: skip
    return names
