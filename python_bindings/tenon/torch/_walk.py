# SPDX-License-Identifier: Apache-2.0
"""A graph of ATen calls, node by node, told to a builder of programs."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.torch import _lines
from tenon.torch._convert import Weights, argument, dtype_name
from tenon.torch._report import Report
from tenon.torch._sizes import at

_PLACE = re.compile(r'File "([^"]+)", line (\d+)')
# What a call may raise that cannot be told; anything else is an error of ours.
_TOLD_ERRORS = (_lines.Refused, ValueError, TypeError, RuntimeError, LookupError)


class _Missing:
    """The value of a call that could not be told, and of those that read it."""


_MISSING: Final = _Missing()


def op_name(overload: Any) -> str:
    """ "add.Tensor" of torch.ops.aten.add.Tensor, "relu" of torch.ops.aten.relu.default."""
    packet = str(overload._schema.name).partition("::")[2]
    name = overload._overloadname
    return packet if name == "default" else f"{packet}.{name}"


class Walk:
    """One walk through a graph: `values` are of its nodes, tensors as values of `builder`. A call that cannot be told is
    written down in `left`, and the walk goes on with an input of the type that PyTorch says, so that `refuse_missing` says
    all at once."""

    def __init__(
        self,
        torch: Any,
        sizes: dict[str, int],
        weights: Weights,
        entry: Report,
        *,
        is_sample: bool = False,
        leaves_random: bool = False,
    ) -> None:
        """`is_sample`: other sizes than these will be run as well. `leaves_random`: calls that draw random numbers cannot be
        told, because PyTorch's generators have to draw them."""
        self.builder = _core.ProgramBuilder(None)
        self.values: dict[Any, Any] = {}
        self._torch = torch
        self._sizes = sizes
        self._weights = weights
        self._entry = entry
        self._is_sample = is_sample
        self._leaves_random = leaves_random
        self.left: set[Any] = set()  # nodes of calls that could not be told
        self._failures: dict[str, str] = {}
        entry.kinds.clear()
        entry.converted.clear()

    def run(self, module: Any) -> Sequence[Any]:
        """Tells all nodes behind the placeholders, which have values; returns what the output node names."""
        results: Sequence[Any] = ()
        for node in module.graph.nodes:
            if node.op == "output":
                results = node.args[0]
            elif node.op != "placeholder":
                self.values[node] = self._node(node, module)
        return results

    def refuse_missing(self) -> None:
        """Raises NotImplementedError with all kinds of calls that could not be told."""
        if not self._failures:
            return
        self.note_missing()
        kinds = "".join(f"\n  {kind}: {why}" for kind, why in self._failures.items())
        raise NotImplementedError(
            f"torch.load: {self._entry.name}: {len(self._failures)} of {len(self._entry.kinds)} kinds of calls "
            f"cannot be told in operators:{kinds}"
        )

    def note_missing(self) -> None:
        """Puts down in the report what could not be told."""
        self._entry.refused = dict(self._failures)

    def value(self, each: Any) -> Any:
        """An argument of a node, with values for nodes."""
        if isinstance(each, self._torch.fx.Node):
            return self.values[each]
        if isinstance(each, (list, tuple)):
            return [self.value(item) for item in each]
        if isinstance(each, Mapping):
            return {key: self.value(item) for key, item in each.items()}
        return argument(each)

    def shape(self, example: Any) -> list[int]:
        return [at(size, self._sizes) for size in example.shape]

    def input(self, example: Any) -> Tensor:
        """The next input of the program, of the type of a tensor of PyTorch's. Raises NotImplementedError for types that
        programs do not have."""
        try:
            dtype = dtype_name(example.dtype)
        except _lines.Refused as error:
            self._failures["an input"] = str(error)
            self.refuse_missing()
            raise
        return self.builder.input(dtype, self.shape(example))

    def input_or_missing(self, example: Any) -> Any:
        """As `input`; of a type that programs do not have, a value that no call can be told of."""
        try:
            return self.builder.input(dtype_name(example.dtype), self.shape(example))
        except _lines.Refused as error:
            self._failures["an input"] = str(error)
            return _MISSING

    def leaf(self, tensor: Any, name: str) -> Tensor:
        """A tensor of PyTorch's that the program reads in place. While torch.compile traces, calls on it are its business."""
        from torch._subclasses.fake_tensor import unset_fake_temporarily

        with unset_fake_temporarily():
            return self.builder.leaf(self._weights(tensor, name), name)

    def _node(self, node: Any, module: Any) -> Any:
        if node.op == "get_attr":
            found = operator.attrgetter(node.target)(module)
            if isinstance(found, self._torch.Tensor):
                return self.leaf(found, node.target)
            return found
        kind = self._kind(node.target)
        is_call = node.target is not operator.getitem and not is_of_numbers(node.target)
        if is_call:
            self._entry.kinds[kind] += 1
        self._locate(node)
        try:
            arguments = [self.value(each) for each in node.args]
            keywords = {key: self.value(each) for key, each in node.kwargs.items()}
            if _is_missing(arguments) or _is_missing(list(keywords.values())):
                self._look_at_name(node.target, kind)
                return self._left(node)
            result = self._call(node, kind, arguments, keywords)
            return self._checked(node, kind, result) if is_call else result
        except _TOLD_ERRORS as error:
            place = "" if isinstance(error, _lines.Refused) else f"{node.name}: "
            self._failures.setdefault(kind, f"{place}{error or type(error).__name__}")
            return self._left(node)

    def _left(self, node: Any) -> Any:
        """What stands for the value of a call that could not be told. Where one of several results is what is missing, the call
        that makes them could not be."""
        self.left.add(node)
        if node.target is operator.getitem:
            self.left.add(node.args[0])
        return self._stand_in(node.meta.get("val"))

    def _stand_in(self, example: Any) -> Any:
        if isinstance(example, (list, tuple)):
            return [self._stand_in(each) for each in example]
        if isinstance(example, self._torch.Tensor):
            try:
                return self.builder.input(dtype_name(example.dtype), self.shape(example))
            except _TOLD_ERRORS:
                return _MISSING
        return _MISSING

    def _look_at_name(self, target: Any, kind: str) -> None:
        """A call of what is missing is told of only if no call of its kind could be."""
        if isinstance(target, self._torch._ops.OpOverload) and target.namespace == "aten":
            why = _lines.reason(kind)
            if why is not None:
                self._failures.setdefault(kind, why)

    def _call(self, node: Any, kind: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        target = node.target
        if target is operator.getitem:
            return self._item(arguments[0], arguments[1], node.args[0])
        if is_of_numbers(target):
            return target(*arguments, **keywords)
        if kind == "higher_order.wrap_with_set_grad_enabled":
            return self._inlined(arguments[1], arguments[2:])
        if not isinstance(target, self._torch._ops.OpOverload) or target.namespace != "aten":
            raise _lines.Refused("it is no ATen call")
        if self._leaves_random and self._draws(target, arguments, keywords):
            raise _lines.Refused("it draws random numbers, which PyTorch's generators do")
        if kind == "_assert_scalar" and self._is_sample and not is_known(node.args[0]):
            raise _lines.Refused(
                f"it checks sizes that each call chooses ({node.args[1]}), and a program cannot; state the "
                f"condition by the dimensions of the export"
            )
        return _lines.tell(self.builder.call, kind, arguments, keywords)

    def _draws(self, target: Any, arguments: list[Any], keywords: dict[str, Any]) -> bool:
        """Whether a call draws random numbers; attention does where it drops some out."""
        if self._torch.Tag.nondeterministic_seeded not in target.tags:
            return False
        given = dict(
            zip((each.name for each in target._schema.arguments), arguments, strict=False),
            **keywords,
        )
        takes_it = any(each.name == "dropout_p" for each in target._schema.arguments)
        return not takes_it or bool(given.get("dropout_p", 0))

    def _kind(self, target: Any) -> str:
        if isinstance(target, self._torch._ops.OpOverload):
            return op_name(target) if target.namespace == "aten" else str(target)
        if isinstance(target, self._torch._ops.HigherOrderOperator):
            return f"higher_order.{target.name()}"
        return str(getattr(target, "__name__", target))

    def _inlined(self, module: Any, arguments: Sequence[Any]) -> Any:
        """A part of the graph that stands in a graph of its own."""
        found = [node for node in module.graph.nodes if node.op == "placeholder"]
        self.values.update(zip(found, arguments, strict=True))
        return self.value(self.run(module))

    def _item(self, values: Any, index: Any, maker: Any) -> Any:
        if isinstance(values, (list, tuple)) and isinstance(index, int) and index >= len(values):
            raise _lines.Refused(
                f"result {index} of {self._kind(maker.target)} is used, which only training needs"
            )
        return values[index]

    def _locate(self, node: Any) -> None:
        found = _PLACE.findall(node.meta.get("stack_trace") or "")
        self.builder.locate(found[-1][0] if found else "", int(found[-1][1]) if found else 0)

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
        shape = self.shape(expected)
        if list(result.shape) != shape:
            raise RuntimeError(
                f"{kind} gives {list(result.shape)} here and {shape} in PyTorch; its line in opdefs/aten is wrong"
            )
        wanted = getattr(tenon, dtype_name(expected.dtype))
        if result.dtype == wanted:
            return result
        self._entry.converted[kind] += 1
        return self.builder.call("cast", result, wanted)


def is_known(argument: Any) -> bool:
    """Whether an argument of a node is the same number whatever sizes the inputs have."""
    value = argument.meta.get("val") if hasattr(argument, "meta") else argument
    return isinstance(value, (bool, int, float))


def is_of_numbers(target: Any) -> bool:
    """A function of sizes, such as operator.mul or torch.sym_max, or of a list of results, operator.getitem."""
    if hasattr(target, "_schema"):  # a call of an operator, sym_size among them
        return False
    module = getattr(target, "__module__", None) or ""
    name = getattr(target, "__name__", "")
    return module in ("_operator", "math") or (
        module.startswith("torch") and name.startswith("sym_")
    )


def _is_missing(arguments: Any) -> bool:
    if isinstance(arguments, list):
        return any(_is_missing(each) for each in arguments)
    return arguments is _MISSING
