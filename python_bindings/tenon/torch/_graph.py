# SPDX-License-Identifier: Apache-2.0
"""The graph of an exported program, node by node, told to a builder."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any

import tenon
from tenon import _core, _structure
from tenon._core import Tensor
from tenon.torch import _lines
from tenon.torch._convert import Weights, argument, dtype_name
from tenon.torch._report import Report
from tenon.torch._sizes import at

_PLACE = re.compile(r'File "([^"]+)", line (\d+)')


class GraphBuilder:
    """Builds the program at given sizes, as often as asked; weights are the same tensors each time."""

    def __init__(self, torch: Any, exported: Any, entry: Report) -> None:
        self.exported = exported
        self._torch = torch
        self._entry = entry
        self._weights = Weights()

    def build(self, sizes: dict[str, int]) -> tuple[_core.Program, list[Any], list[Any]]:
        """The program, and the structures of its arguments and results."""
        self._sizes = sizes
        self._native = _core.ProgramBuilder(None)
        self._values: dict[Any, Any] = {}
        self._failures: dict[str, str] = {}
        self._entry.kinds.clear()
        self._entry.writes.clear()
        self._entry.converted.clear()
        arguments = self._add_inputs()
        results: list[Any] = []
        for node in self.exported.graph.nodes:
            if node.op == "output":
                results = list(node.args[0])
            elif node.op != "placeholder":
                self._values[node] = self._node(node, self.exported.graph_module)
        if self._failures:
            self._entry.refused = dict(self._failures)
            raise NotImplementedError(self._refusal())
        outputs, structure = self._finish(results)
        self._entry.shared_bytes = self._weights.bytes
        return self._native.finish(outputs), arguments, structure

    def _refusal(self) -> str:
        kinds = "".join(f"\n  {kind}: {why}" for kind, why in self._failures.items())
        return (
            f"torch.load: {self._entry.name}: {len(self._failures)} of {len(self._entry.kinds)} kinds of calls "
            f"cannot be told in operators:{kinds}"
        )

    # -- inputs and weights -------------------------------------------------------------------------------

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
                tensor = self._weight(spec)
                value = self._native.leaf(self._weights(tensor, spec.target), spec.target)
            else:
                raise NotImplementedError(
                    f"torch.load: input `{spec.arg.name}` of the exported program is of kind {spec.kind.name}; "
                    f"only tensors, numbers and weights can be told"
                )
            if node is not None:
                self._values[node] = value
            self._targets[spec.target or spec.arg.name] = value
        arguments, keywords = self._torch.utils._pytree.tree_unflatten(
            given, exported.call_spec.in_spec
        )
        tensors: list[Tensor] = []
        return _structure.flatten(tuple(arguments) + tuple(keywords.values()), tensors)

    def _user_input(self, spec: Any, node: Any) -> Any:
        if type(spec.arg).__name__ == "ConstantArgument":
            return spec.arg.value
        example = node.meta["val"]
        if not isinstance(example, self._torch.Tensor):
            raise NotImplementedError(
                f"torch.load: input `{spec.arg.name}` is a {type(example).__name__} that each call chooses; "
                f"only tensors can be"
            )
        return self._native.input(dtype_name(example.dtype), self._shape(example))

    def _weight(self, spec: Any) -> Any:
        for holder in (self.exported.state_dict, self.exported.constants):
            if spec.target in holder:
                return holder[spec.target]
        raise ValueError(f"torch.load: the exported program has no tensor `{spec.target}`")

    def _shape(self, example: Any) -> list[int]:
        return [at(size, self._sizes) for size in example.shape]

    # -- nodes --------------------------------------------------------------------------------------------

    def _node(self, node: Any, module: Any) -> Any:
        if node.op == "get_attr":
            found = operator.attrgetter(node.target)(module)
            if isinstance(found, self._torch.Tensor):
                return self._native.leaf(self._weights(found, node.target), node.target)
            return found
        kind = self._kind(node.target)
        is_counted = node.target is not operator.getitem and not self._is_of_numbers(node.target)
        if is_counted:
            self._entry.kinds[kind] += 1
        self._locate(node)
        try:
            result = self._call(node, kind)
        except Exception as error:
            if not isinstance(
                error,
                (
                    _lines.Refused,
                    ValueError,
                    TypeError,
                    RuntimeError,
                    LookupError,
                    NotImplementedError,
                ),
            ):
                raise
            place = "" if isinstance(error, _lines.Refused) else f"{node.name}: "
            self._failures.setdefault(kind, f"{place}{error or type(error).__name__}")
            return self._invented(node.meta.get("val"))
        return self._checked(node, kind, result) if is_counted else result

    def _call(self, node: Any, kind: str) -> Any:
        target = node.target
        arguments = [self._value(each) for each in node.args]
        keywords = {key: self._value(each) for key, each in node.kwargs.items()}
        if target is operator.getitem:
            return self._item(*arguments, maker=node.args[0])
        if kind in ("sym_size.int", "sym_numel"):
            shape = arguments[0].shape
            return shape[arguments[1]] if kind == "sym_size.int" else arguments[0].numel()
        if self._is_of_numbers(target):
            return target(*arguments, **keywords)
        if kind == "higher_order.wrap_with_set_grad_enabled":
            return self._inlined(arguments[1], arguments[2:])
        if not isinstance(target, self._torch._ops.OpOverload) or target.namespace != "aten":
            raise _lines.Refused("it is no ATen call")
        return _lines.tell(self._native.call, kind, arguments, keywords)

    def _kind(self, target: Any) -> str:
        from tenon.torch._load import op_name

        if isinstance(target, self._torch._ops.OpOverload):
            return op_name(target) if target.namespace == "aten" else str(target)
        if isinstance(target, self._torch._ops.HigherOrderOperator):
            return f"higher_order.{target.name()}"
        return str(getattr(target, "__name__", target))

    def _is_of_numbers(self, target: Any) -> bool:
        module = getattr(target, "__module__", "")
        name = getattr(target, "__name__", "")
        return module in ("_operator", "math") or (
            module.startswith("torch") and name.startswith("sym_")
        )

    def _inlined(self, module: Any, arguments: Sequence[Any]) -> Any:
        """A part of the graph that stands in a graph of its own."""
        places = iter(arguments)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                self._values[node] = next(places)
            elif node.op == "output":
                return self._value(node.args[0])
            else:
                self._values[node] = self._node(node, module)
        raise AssertionError("a graph without output")

    def _item(self, values: Any, index: Any, maker: Any) -> Any:
        if isinstance(values, (list, tuple)) and isinstance(index, int) and index >= len(values):
            raise _lines.Refused(
                f"result {index} of {self._kind(maker.target)} is used, which only training needs"
            )
        return values[index]

    def _value(self, each: Any) -> Any:
        if isinstance(each, self._torch.fx.Node):
            return self._values[each]
        if isinstance(each, (list, tuple)):
            return [self._value(item) for item in each]
        if isinstance(each, Mapping):
            return {key: self._value(item) for key, item in each.items()}
        return argument(each)

    def _locate(self, node: Any) -> None:
        places = _PLACE.findall(node.meta.get("stack_trace") or "")
        if places:
            self._native.locate(places[-1][0], int(places[-1][1]))
        else:
            self._native.locate("", 0)

    # -- results ------------------------------------------------------------------------------------------

    def _checked(self, node: Any, kind: str, result: Any) -> Any:
        """What PyTorch says of the result has to be so; a dtype is made so."""
        expected = node.meta.get("val")
        if isinstance(result, Tensor) and isinstance(expected, self._torch.Tensor):
            return self._fitted(kind, result, expected)
        if isinstance(result, list) and isinstance(expected, (list, tuple)):
            return [
                self._fitted(kind, one, other)
                if isinstance(one, Tensor) and isinstance(other, self._torch.Tensor)
                else one
                for one, other in zip(result, expected, strict=False)
            ]
        return result

    def _fitted(self, kind: str, result: Tensor, expected: Any) -> Tensor:
        shape = self._shape(expected)
        if list(result.shape) != shape:
            raise RuntimeError(
                f"torch.load: {kind} gives {list(result.shape)} here and {shape} in PyTorch; "
                f"its line in opdefs/aten is wrong"
            )
        wanted = getattr(tenon, dtype_name(expected.dtype))
        if result.dtype == wanted:
            return result
        self._entry.converted[kind] += 1
        return self._native.call("cast", result, wanted)

    def _invented(self, example: Any) -> Any:
        """A value in the place of one that could not be told, so that other calls can be tried."""
        if isinstance(example, (list, tuple)):
            return [self._invented(each) for each in example]
        if isinstance(example, self._torch.Tensor):
            try:
                return self._native.input(dtype_name(example.dtype), self._shape(example))
            except _lines.Refused:
                return None
        return example

    def _finish(self, results: Sequence[Any]) -> tuple[list[Tensor], list[Any]]:
        """Results in the model's structure, and writes at the end."""
        kind = self._torch.export.graph_signature.OutputKind
        returned: list[Any] = []
        written: list[tuple[str, Tensor]] = []
        for spec, node in zip(self.exported.graph_signature.output_specs, results, strict=True):
            value = self._value(node)
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
                self._native.call("clone", each) if isinstance(each, Tensor) else each
                for each in returned
            ]
            written = [(name, self._native.call("clone", value)) for name, value in written]
        for name, value in written:
            self._native.call("clone", value, out=self._targets[name])
            self._entry.writes.append(name)
        tree = self._torch.utils._pytree.tree_unflatten(returned, self.exported.call_spec.out_spec)
        tensors: list[Tensor] = []
        return tensors, _structure.flatten(_plain(tree), tensors)


def _plain(tree: Any) -> Any:
    """Containers of libraries as the dicts and tuples that they are."""
    if isinstance(tree, Mapping):
        return {key: _plain(each) for key, each in tree.items() if each is not None}
    if isinstance(tree, list):
        return [_plain(each) for each in tree]
    if isinstance(tree, tuple):
        return tuple(_plain(each) for each in tree)
    return tree
