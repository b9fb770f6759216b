# SPDX-License-Identifier: Apache-2.0
"""How many of PyTorch's public names the alias has, and which of the others public programs use most.

    python -m tests.bridges.alias_names [--missing] [--used FOLDER ...]

Runs where PyTorch is installed. PyTorch tells its names in one process, and the alias tells in another which of them it has: a name is
there, or it stands for something that is refused where it is used, or it is missing. A missing name whose error does not say
so makes the program fail. With --used the names that are not there are ordered by how often the sources in these folders
mention them; methods of tensors by every attribute of that name, whatever its object is.
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import subprocess
import sys
from pathlib import Path

SPACES = """torch torch.Tensor torch.nn torch.nn.functional torch.nn.init torch.nn.utils torch.nn.utils.rnn torch.nn.parallel
torch.optim torch.optim.lr_scheduler torch.optim.swa_utils torch.utils.data torch.utils.checkpoint torch.autograd
torch.autograd.functional torch.linalg torch.fft torch.special torch.signal.windows torch.masked torch.sparse torch.nested
torch.distributions torch.distributed torch.multiprocessing torch.amp torch.func torch.compiler torch.profiler torch.random
torch.cuda torch.accelerator torch.backends.cudnn torch.serialization torch.hub torch.testing""".split()

_OF_PYTORCH = """
import importlib, json, sys, types, warnings
warnings.simplefilter("ignore")
def public(space):
    if space == "torch.Tensor":
        import torch
        return [n for n in dir(torch.Tensor) if not n.startswith("_")]
    module = importlib.import_module(space)
    own = getattr(module, "__all__", None)
    if own is None:  # what it has not imported for itself
        own = [
            name for name in dir(module)
            if not isinstance(value := getattr(module, name, None), (types.ModuleType, str, bool))
            and str(getattr(value, "__module__", None) or "torch").startswith("torch")
            and name != "Tensor"
        ]
    return sorted({n for n in own if not n.startswith("_")})
json.dump({space: public(space) for space in json.load(sys.stdin)}, sys.stdout)
"""
_OF_ALIAS = """
import importlib, json, sys
from tenon.compat.torch import alias
torch = alias()
def state(space, name):
    try:
        value = getattr(torch.ones(2, 2), name) if space == "torch.Tensor" else getattr(importlib.import_module(space), name)
    except (AttributeError, ImportError, NotImplementedError) as error:
        return ("missing" if name in str(error) or space in str(error) else "silent") + f": {error}"
    except Exception as error:  # a property that has no value for this tensor, as PyTorch's
        return "there"
    return "refused" if getattr(value, "is_absent", False) else "there"
asked = json.load(sys.stdin)
json.dump({space: {name: state(space, name) for name in names} for space, names in asked.items()}, sys.stdout)
"""


def ask(program: str, question: object) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(question), capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout[done.stdout.index("{") :])


class _Uses(ast.NodeVisitor):
    """Counts names of torch by the path that leads to them from an import, and attributes of everything else."""

    def __init__(
        self, used: collections.Counter[str], attributes: collections.Counter[str]
    ) -> None:
        self.used, self.attributes = used, attributes
        self.known: dict[str, str] = {}  # what a name of the file is in torch

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            if each.name.partition(".")[0] == "torch":
                self.known[each.asname or "torch"] = each.name if each.asname else "torch"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level == 0 and module.partition(".")[0] == "torch":
            for each in node.names:
                self.known[each.asname or each.name] = f"{module}.{each.name}"
                self.used[f"{module}.{each.name}"] += 1

    def path(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            return self.known.get(node.id)
        if isinstance(node, ast.Attribute):
            before = self.path(node.value)
            return before and f"{before}.{node.attr}"
        return None

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = self.path(node)
        if path is None:
            self.attributes[node.attr] += 1
            self.generic_visit(node)
        else:
            self.used[path] += 1


def uses(folders: list[Path]) -> tuple[collections.Counter[str], collections.Counter[str]]:
    used: collections.Counter[str] = collections.Counter()
    attributes: collections.Counter[str] = collections.Counter()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            try:
                tree = ast.parse(path.read_text(encoding="utf-8"))
            except (SyntaxError, UnicodeDecodeError):
                continue
            _Uses(used, attributes).visit(tree)
    return used, attributes


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--missing", action="store_true", help="print the names that are not there")
    parser.add_argument("--used", type=Path, nargs="+", metavar="FOLDER", default=[])
    options = parser.parse_args()
    told = ask(_OF_ALIAS, ask(_OF_PYTORCH, SPACES))
    totals: collections.Counter[str] = collections.Counter()
    lacking: list[tuple[str, str, str]] = []
    for space, states in told.items():
        counts = collections.Counter(text.partition(":")[0] for text in states.values())
        totals += counts
        lacking += [(space, name, text) for name, text in states.items() if text != "there"]
        lacks = f", {counts['refused']} refused" if counts["refused"] else ""
        print(f"{space}: {counts['there']} of {len(states)}{lacks}")
    used, attributes = uses(options.used)

    def frequency(item: tuple[str, str, str]) -> int:
        space, name, _ = item
        return attributes[name] if space == "torch.Tensor" else used[f"{space}.{name}"]

    lacking.sort(key=frequency, reverse=True)
    for item in lacking:
        if options.missing or (options.used and frequency(item)):
            print(f"{frequency(item):6d} {item[0]}.{item[1]} ({item[2].partition(':')[0]})")
    silent = [
        f"{space}.{name}: {text}" for space, name, text in lacking if text.startswith("silent")
    ]
    for each in silent:
        print(f"does not say that it is missing: {each}")
    print(
        f"{totals['there']} of {totals.total()} names are there, {totals['refused']} are refused where they are used, "
        f"{totals['missing']} are missing"
    )
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
