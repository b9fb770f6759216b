# SPDX-License-Identifier: Apache-2.0
"""An exported program: its inputs, weights and results around the walk through its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenon import _core
from tenon._core import Tensor
from tenon.jit import structures
from tenon.torch._convert import Weights
from tenon.torch._report import Report
from tenon.torch._walk import Walk


class GraphBuilder:
    """Builds the program at given sizes, as often as asked; weights are the same tensors each time."""

    def __init__(self, torch: Any, exported: Any, entry: Report) -> None:
        self.exported = exported
        self._torch = torch
        self._entry = entry
        self._weights = Weights()

    def build(self, sizes: dict[str, int]) -> tuple[_core.Program, list[Any], list[Any]]:
        """The program, and the structures of its arguments and results."""
        self._walk = Walk(self._torch, sizes, self._weights, self._entry, is_sample=bool(sizes))
        self._entry.writes.clear()
        arguments = self._add_inputs()
        results = self._walk.run(self.exported.graph_module)
        self._walk.refuse_missing()
        outputs, structure = self._finish(results)
        self._entry.shared_bytes = self._weights.bytes
        self._entry.copied_bytes = self._weights.copied_bytes
        return self._walk.builder.finish(outputs), arguments, structure

    def _add_inputs(self) -> list[Any]:
        exported, kind = self.exported, self._torch.export.graph_signature.InputKind
        nodes = {node.name: node for node in exported.graph.nodes if node.op == "placeholder"}
        self._targets: dict[str, Any] = {}  # values of buffers and inputs, which may be written
        given: list[Any] = []
        for spec in exported.graph_signature.input_specs:
            node = nodes.get(spec.arg.name)
            if spec.kind == kind.USER_INPUT:
                value = self._user_input(spec, node)
                given.append(value)
            elif spec.kind in (kind.PARAMETER, kind.BUFFER, kind.CONSTANT_TENSOR):
                value = self._walk.leaf(self._weight(spec), spec.target)
            else:
                raise NotImplementedError(
                    f"torch.load: input `{spec.arg.name}` of the exported program is of kind {spec.kind.name}; "
                    f"only tensors, numbers and weights can be told"
                )
            if node is not None:
                self._walk.values[node] = value
            self._targets[spec.target or spec.arg.name] = value
        arguments, keywords = self._torch.utils._pytree.tree_unflatten(
            given, exported.call_spec.in_spec
        )
        tensors: list[Tensor] = []
        return structures.flatten(
            tuple(map(_plain, arguments)) + tuple(map(_plain, keywords.values())), tensors
        )

    def _user_input(self, spec: Any, node: Any) -> Any:
        if type(spec.arg).__name__ == "ConstantArgument":
            return spec.arg.value
        example = node.meta["val"]
        if not isinstance(example, self._torch.Tensor):
            raise NotImplementedError(
                f"torch.load: input `{spec.arg.name}` is a {type(example).__name__} that each call chooses; "
                f"only tensors can be"
            )
        return self._walk.input(example)

    def _weight(self, spec: Any) -> Any:
        for holder in (self.exported.state_dict, self.exported.constants):
            if spec.target in holder:
                return holder[spec.target]
        raise ValueError(f"torch.load: the exported program has no tensor `{spec.target}`")

    def _finish(self, results: Sequence[Any]) -> tuple[list[Tensor], list[Any]]:
        """Results in the model's structure, and writes at the end."""
        kind = self._torch.export.graph_signature.OutputKind
        call = self._walk.builder.call
        returned: list[Any] = []
        written: list[tuple[str, Tensor]] = []
        for spec, node in zip(self.exported.graph_signature.output_specs, results, strict=True):
            value = self._walk.value(node)
            if spec.kind == kind.USER_OUTPUT:
                returned.append(value)
            elif spec.kind in (kind.BUFFER_MUTATION, kind.USER_INPUT_MUTATION):
                written.append((spec.target, value))
            else:
                raise NotImplementedError(
                    f"torch.load: result `{spec.arg.name}` is of kind {spec.kind.name}; programs of inference "
                    f"alone can be told"
                )
        if written:  # what is returned or written may show memory that another write changes
            returned = [
                call("clone", each) if isinstance(each, Tensor) else each for each in returned
            ]
            written = [(name, call("clone", value)) for name, value in written]
        for name, value in written:
            if name in self._weights.copied:
                raise NotImplementedError(
                    f"torch.load: the model writes `{name}`, which is a conjugate or negative view; "
                    f"make it a tensor of its own with resolve_conj().resolve_neg()"
                )
            call("clone", value, out=self._targets[name])
            self._entry.writes.append(name)
        tree = self._torch.utils._pytree.tree_unflatten(returned, self.exported.call_spec.out_spec)
        tensors: list[Tensor] = []
        structure = structures.flatten(_plain(tree), tensors)
        return tensors, structure


def _plain(tree: Any) -> Any:
    """Containers of libraries as the dicts and tuples that they are."""
    if isinstance(tree, Mapping):
        return {key: _plain(each) for key, each in tree.items()}
    if isinstance(tree, list):
        return [_plain(each) for each in tree]
    if isinstance(tree, tuple):
        return tuple(_plain(each) for each in tree)
    return tree
