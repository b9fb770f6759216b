# SPDX-License-Identifier: Apache-2.0
"""Tenon's own Python calls no method of tensors that means something else under tenon.compat.torch.alias()."""

import ast
import pathlib

import pytest

PACKAGE = pathlib.Path(__file__).parents[3] / "python_bindings" / "tenon"
# Methods, by how a call of them has one meaning only: never, with a keyword, with a list first, or without arguments.
NEVER = """std var repeat gather scatter scatter_add scatter_reduce index_select index_add index_copy index_fill
index_put equal median mode kthvalue unique norm quantile cummax cummin take sort nanmedian""".split()
WITHOUT_ARGUMENTS = ["max", "min", "type"]
# Receivers that are no tensors, by module.
OTHERS = {
    "distributed": {"group", "self._turn", "turn", "ctx.group", "group or world()", "reducer"},
    "distributed/checkpoint": {"box", "piece.box", "first", "other", "both"},
    "distributed/fully_shard.py": {"self", "unit", "ctx.unit", "order_of(self.group)"},
    "distributed/pipelines": {"mail"},
    "distributed/planning": {"each", "event", "link", "layout.data"},
    "text/strings.py": {"each"},
    "llm": {"row", "cursor", "fields", "self", "asyncio", "allowed", "found"},
    "optim": {"lists"},
    "onnx": {"cursor", "self", "array", "got"},
    "quantization": {"block"},
    "data/arrow.py": {"self.table"},
    "jit/syntax": {"merging"},
    "profiler": {"events"},
    "runtime": {"pieces"},
    "cli": {"plugins", "statistics", "arguments", "each"},
    "nn/transformer.py": {"self"},
    "vision/ops/priors.py": {"distances"},
    "compat/torch/distributed": {"_dist", "chosen"},
    "compat/torch": {"_functions", "_arrays", "_copies", "_torch", "_indices", "of", "chosen"},
    "": {
        "builtins",
        "F",
        "np",
        "numpy",
        "tenon",
        "operator",
        "random",
        "math",
        "_torch",
        "_core",
        "_functional",
        "itertools",
        "functools",
    },
}
# What is no tensor and has a size: layers, groups of ranks, structs, pictures, parts of files.
SIZES_OF_OTHERS = set(
    """self group call shape picture image found environment self.communicator self.group call.outputs RECORD _DESCRIPTOR LENGTH
    _BEHIND_HEAD _HEAD known place self.experts everyone self._turn turn header self.process_group place.group self.replicas param.group
    holders ring.group piece.box""".split()
)


def receivers(path):
    return set().union(*(names for place, names in OTHERS.items() if path.startswith(place)))


def faults(path, tree):
    known = receivers(path)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "size" and id(node) not in called:
            receiver = ast.unparse(node.value)
            if isinstance(node.ctx, ast.Load) and receiver not in known | SIZES_OF_OTHERS:
                yield f"{path}:{node.lineno}: {receiver}.size"
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        name, receiver = node.func.attr, ast.unparse(node.func.value)
        if receiver in known or receiver.startswith(("tenon.", "np.", "numpy.", "super()")):
            continue
        if name in NEVER or (name in WITHOUT_ARGUMENTS and (node.args or node.keywords)):
            yield f"{path}:{node.lineno}: {ast.unparse(node)[:80]}"


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(("compat/numpy", "compat/paddle", "torch/")):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def test_no_method_of_two_meanings_is_called():
    found = [fault for name, tree in modules() for fault in faults(name, tree)]
    assert found == [], "call the operator: tenon.max(x, axis)"


@pytest.mark.parametrize(
    "code, count",
    [
        ("x.max(0)", 1),
        ("x.max()", 0),
        ("tenon.max(x, 0)", 0),
        ("x.std()", 1),
        ("x[0].gather(i, 0)", 1),
        ("x.size + 1", 1),
    ],
)
def test_the_search_finds(code, count):
    assert len(list(faults("nn/module.py", ast.parse(code)))) == count
