#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where the Python package leaves its order (docs/decisions/0127-rooms-of-the-python-package.md): a private module
outside of the rooms, a room that imports one of its own floor or above, modules that import each other in a circle, or an import
inside a function that does not say why it is there. What a module reaches as `tenon.NAME`, or names for `import_module`, counts as
an import of the module in which that lies.

Usage: scripts/rooms.py [--picture] [PACKAGE]   PACKAGE: the folder, by default python_bindings/tenon
"""

import argparse
import ast
import functools
import sys
from collections import defaultdict
from pathlib import Path

# Rooms (folders, and public modules that are one file) from the ground up. A room imports those of floors below.
FLOORS = [
    "_core _operators _spellings _aten_calls _paddle_calls",  # the compiled half, and what the build generates
    "_tensor fft host plugins",
    "autograd io ops random runtime signal text",
    "collective linalg multiprocessing",
    "array_api data metrics nn",
    "audio distributions func geometric jit optim profiler testing vision",
    "utils",
    "amp",
    "distributed quantization sparse",
    "inference llm onnx training",
    "compat serving",
    "jax paddle torch",
    "cli",
    "__main__",
]
# Arrows upward that stay, and why.
UPWARD = {
    (
        "compat.torch",
        "compat.torch._alias",
    ): "alias(), called by name: the namespace's functions become methods",
    ("autograd", "func.jacobians"): "a name of PyTorch, imported when a user names it",
    ("autograd", "utils.numerics"): "a name of PyTorch, imported when a user names it",
    ("utils.checkpoint", "amp.autocast"): "what is computed again enters the region of the call",
}
# Private modules in the package's own folder that stay, and why.
PRIVATE = {
    "_core": "the compiled half",
    "_tensor": "the room of functions and methods of tensors, whose public names are `tenon.NAME`",
}
# Files that belong to a room of another name.
SAME_ROOM = {"collective": "distributed"}


class Import:
    """A way from one module to another: a statement, an attribute of `tenon`, or a name for import_module."""

    def __init__(self, importer: str, imported: str, line: int, is_inside: bool) -> None:
        self.importer, self.imported = importer, imported
        self.line, self.is_inside = line, is_inside  # is_inside: in a function


def read_modules(package: Path) -> dict[str, Path]:
    """Modules by name without `tenon.`; the package itself is ""."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        modules[".".join(parts)] = path
    return modules


@functools.cache
def parsed(text: str) -> ast.Module:
    return ast.parse(text)


def statements(tree: ast.AST, is_inside: bool = False):
    """(statement, whether it is in a function) for imports that run; those for type checkers do not. No expression holds one."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                yield from statements(ast.Module([other], []), is_inside)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, is_inside
        elif isinstance(node, (ast.stmt, ast.excepthandler, ast.match_case)):
            is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            yield from statements(node, is_inside or is_function)


def named_modules(node: ast.Import | ast.ImportFrom, package: list[str]):
    """The modules that a statement may import, as dotted names below `tenon`. `package`: the importer's."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        base = (node.module or "").split(".") if node.module else []
        if node.level:
            base = ["tenon", *package[: len(package) - node.level + 1], *base]
        names = [".".join([*base, alias.name]) for alias in node.names]
    for name in names:
        if name.startswith("tenon."):
            yield name.removeprefix("tenon.")


def names_of_package(modules: dict[str, Path]) -> dict[str, str]:
    """The modules that names of the package itself lead to: submodules, other names of them, and what lies in them."""
    named = {module: module for module in modules if module and "." not in module}
    for node in parsed(modules[""].read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if node.targets[0].id == "_ALIASES":
                named.update(ast.literal_eval(node.value))
            elif node.targets[0].id == "_PLACES":
                for place, names in ast.literal_eval(node.value).items():
                    named.update(dict.fromkeys(names.split(), place))
    return named


def running(node: ast.AST, has_quoted_types: bool):
    """The nodes that run: not what is for type checkers."""
    for field, value in ast.iter_fields(node):
        if has_quoted_types and field in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.AST):
                yield child
                yield from running(child, has_quoted_types)


def reached_modules(tree: ast.Module, modules: dict[str, Path], named: dict[str, str]):
    """(module, line) of what a file reaches without a statement: `tenon.NAME`, and strings for import_module."""
    found = [node for node, _ in statements(tree)]
    roots = {
        alias.asname or "tenon"
        for node in found
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "tenon" or (alias.name.startswith("tenon.") and not alias.asname)
    }
    has_quoted_types = any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in found
    )
    nodes = list(running(tree, has_quoted_types))
    names_modules = any("import_module" in (getattr(node, "attr", ""), getattr(node, "id", ""))
                        for node in nodes)  # fmt: skip
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in roots and node.attr in named:
                yield named[node.attr], node.lineno
        elif names_modules and isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value.removeprefix("tenon.") in modules and node.value.startswith("tenon."):
                yield node.value.removeprefix("tenon."), node.lineno


def read_imports(modules: dict[str, Path]) -> list[Import]:
    imports = []
    named = names_of_package(modules)
    for importer, path in modules.items():
        parts = importer.split(".") if importer else []
        package = parts if path.name == "__init__.py" else parts[:-1]
        tree = parsed(path.read_text(encoding="utf-8"))
        if importer:  # the package itself hands out what all rooms have
            for name, line in reached_modules(tree, modules, named):
                if name != importer and not f"{importer}.".startswith(f"{name}."):
                    imports.append(Import(importer, name, line, is_inside=True))
        for node, is_inside in statements(tree):
            for name in named_modules(node, package):
                while name and name not in modules and "." in name:
                    name = name.rpartition(".")[0]  # of `from tenon.nn import Module`, the module
                # Importing a module of another package runs that package's own module, too.
                steps = name.split(".")
                for end in range(1, len(steps) + 1):
                    imported = ".".join(steps[:end])
                    is_around = end < len(steps) and f"{importer}.".startswith(f"{imported}.")
                    if imported in modules and imported != importer and not is_around:
                        imports.append(Import(importer, imported, node.lineno, is_inside))
    return imports


def room_of(module: str) -> str:
    top = module.split(".")[0]
    return SAME_ROOM.get(top, top)


def circles(imports: list[Import]) -> list[list[str]]:
    """Sets of modules each of which leads to each other one (Tarjan, 1972)."""
    targets = defaultdict(set)
    for each in imports:
        if is_known(each):
            continue
        targets[each.importer].add(each.imported)
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for target in sorted(targets[module]):
            if target not in index:
                visit(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], index[target])
        if low[module] == index[module]:
            circle = []
            while not circle or circle[-1] != module:
                circle.append(stack.pop())
            if len(circle) > 1:
                found.append(sorted(circle))

    sys.setrecursionlimit(10_000)
    for module in sorted(targets):
        if module not in index:
            visit(module)
    return found


def is_known(each: Import) -> bool:
    """Whether UPWARD has it. Importing `amp.autocast` imports `amp` as well."""
    return any(each.importer == a and f"{b}.".startswith(f"{each.imported}.") for a, b in UPWARD)


def faults_of(package: Path) -> list[str]:
    modules = read_modules(package)
    imports = read_imports(modules)
    floors = {room: number for number, rooms in enumerate(FLOORS) for room in rooms.split()}
    faults = []
    for name in sorted({module.split(".")[0] for module in modules if module}):
        if name.startswith("_") and not name.startswith("__") and name not in PRIVATE:
            faults.append(
                f"{name}: a private module outside of the rooms; move it into the room that uses it"
            )
        elif room_of(name) not in floors:
            faults.append(f"{name}: a room without a floor; add it to FLOORS in scripts/rooms.py")
    for each in imports:
        here, there = room_of(each.importer), room_of(each.imported)
        if not each.importer or here == there or here not in floors or there not in floors:
            continue
        if floors[there] >= floors[here] and not is_known(each):
            faults.append(
                f"{each.importer}:{each.line}: imports {each.imported}, which is no floor below; move what both need down, or "
                f"what imports up"
            )
    for circle in circles(imports):
        arrows = sorted(
            {
                f"{each.importer} -> {each.imported} (line {each.line})"
                for each in imports
                if each.importer in circle and each.imported in circle
            }
        )
        faults.append("a circle of imports, also of those inside functions: " + "; ".join(arrows))
    for module, path in modules.items():
        if module.split(".")[0] != "cli":  # whose commands import what they use when they run
            faults += unexplained(module, path)
    return faults


def unexplained(module: str, path: Path) -> list[str]:
    """Imports of the package inside functions without a comment that says why."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    faults = []
    for node, is_inside in statements(parsed(text)):
        has_reason = "#" in lines[node.lineno - 1] or lines[node.lineno - 2].lstrip().startswith(
            "#"
        )
        if is_inside and list(named_modules(node, package)) and not has_reason:
            faults.append(
                f"{module or 'tenon'}:{node.lineno}: an import inside a function; expected it at the top, or a comment that says "
                f"why not"
            )
    return faults


def picture(package: Path) -> str:
    """Floors from the top, with what each room imports."""
    arrows = defaultdict(set)
    imports = read_imports(read_modules(package))
    for each in imports:
        if each.importer and room_of(each.importer) != room_of(each.imported):
            arrows[room_of(each.importer)].add(room_of(each.imported))
    lines = []
    for number, rooms in reversed(list(enumerate(FLOORS))):
        lines.append(f"floor {number}")
        for room in rooms.split():
            if (package / room).is_dir() or (package / f"{room}.py").exists():
                lines.append(f"  {room:14} -> {' '.join(sorted(arrows[room]))}".rstrip(" ->"))
    count = sum(map(len, arrows.values()))
    return "\n".join([*lines, f"{count} arrows between rooms, {len(circles(imports))} circles"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--picture", action="store_true", help="print the floors and who imports whom"
    )
    parser.add_argument(
        "package", nargs="?", type=Path,
        default=Path(__file__).resolve().parent.parent / "python_bindings" / "tenon",
    )  # fmt: skip
    arguments = parser.parse_args()
    if arguments.picture:
        print(picture(arguments.package))
        return 0
    faults = faults_of(arguments.package)
    print(*(f"rooms: {fault}" for fault in faults), sep="\n", end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
