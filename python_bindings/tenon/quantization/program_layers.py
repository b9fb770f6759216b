# SPDX-License-Identifier: Apache-2.0
"""Programs as modules, whose products with weights are layers, so that recipes for modules are recipes for programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tenon
from tenon import Tensor, _core, nn
from tenon.jit import Program, structures
from tenon.jit.program_graph import ProgramGraph, Step, Value

from .layers import BlockLinear, Float8Linear, Int8Conv, Int8Linear, wide_dtype

_PRODUCTS = ("tenon::linear", "tenon::linear_batch_invariant", "tenon::matmul", "tenon::conv2d")


class _Reference(NamedTuple):
    """The value of a program that an operand is."""

    id: int


class _Call(NamedTuple):
    """A step: of a layer, which reads one value, or of an operator."""

    layer: str | None
    function: Callable[..., Any] | None  # None: the operand itself
    operands: dict[str, Any]
    results: list[int]


class _Plan:
    """What a program computes, which all copies of its module share."""

    def __init__(self, program: Program) -> None:
        self.program = program.freeze()
        graph = self.program.graph
        self.inputs = [(value.id, tuple(value.shape)) for value in graph.inputs]
        self.results = [value.id for value in graph.results]
        self.constants = {value.id: value.constant for value in graph.values if _data(value)}
        self.calls: list[_Call] = []
        self.layers: dict[str, nn.Module] = {}
        self.indices: dict[str, int] = {}  # of the layers, among the steps
        for place, step in enumerate(graph.steps):
            layer = _layer_of(step)
            if layer is None:
                self.calls.append(_call_of(step))
                continue
            name = f"{step.name.removeprefix('tenon::')}_{len(self.layers)}"
            self.layers[name], self.indices[name] = layer, place
            x = step.operands["x"]
            self.calls.append(_Call(name, None, {"x": _Reference(x.id)}, [step.result.id]))

    def __deepcopy__(self, _: Any) -> _Plan:
        return self


class ProgramLayers(nn.Module):
    """A program as a module: its linear, matmul and conv2d steps with weights are layers, named "linear_0", "conv2d_1" and
    so on in the order in which they run, and its other steps are calls of their operators.

    It takes and returns what the program does, at the sizes that the program was recorded with. `program()` is a program
    again, with the layers that are there by then.
    """

    def __init__(self, program: Program) -> None:
        plan = _Plan(program)
        if not plan.layers:
            raise ValueError(
                "quantization: expected a program with products of weights (linear, matmul, conv2d), got one without"
            )
        self._plan = plan
        for name, layer in plan.layers.items():
            setattr(self, name, layer)

    def forward(self, *args: Any) -> Any:
        plan = self._plan
        tensors: list[Tensor] = []
        structure = structures.flatten(args, tensors)
        if not structures.same(structure, plan.program._inputs):
            raise ValueError(
                f"quantization: expected arguments {structures.describe(plan.program._inputs)}, as the program takes "
                f"them, got {structures.describe(structure)}"
            )
        values: dict[int, Any] = dict(plan.constants)
        for (id, shape), tensor in zip(plan.inputs, tensors, strict=True):
            if tuple(tensor.shape) != shape:
                raise ValueError(
                    f"quantization: expected an input of shape {shape}, with which the program was recorded, got "
                    f"{tuple(tensor.shape)}; program() takes other sizes"
                )
            values[id] = tensor
        for call in plan.calls:
            operands = {name: _given(operand, values) for name, operand in call.operands.items()}
            if call.layer is not None:
                made = getattr(self, call.layer)(operands["x"])
            elif call.function is None:
                made = operands["x"].detach()
            else:
                made = call.function(**operands)
            several = isinstance(made, (list, tuple))
            values.update(zip(call.results, made if several else [made], strict=True))
        return structures.unflatten(
            plan.program._outputs, iter([values[id] for id in plan.results])
        )

    def program(self) -> Program:
        """The program with the layers of now. Sizes that it leaves open stay open."""
        plan = self._plan
        layers = {name: getattr(self, name) for name in plan.indices}
        for name, layer in layers.items():
            if type(layer) not in _INSERT:
                raise TypeError(
                    f"quantization: expected layer {name!r} to be converted, got a {type(layer).__name__}; call "
                    "convert() first"
                )

        def put(graph: ProgramGraph) -> None:
            steps = graph.steps
            for name, layer in layers.items():
                step = steps[plan.indices[name]]
                x = step.operands["x"]
                value = _INSERT[type(layer)](graph, step, layer, x)
                graph.replace(step.result, value)
                graph.remove(step)

        return plan.program.edit(put)


def as_module(function: str, module: Any) -> Any:
    """A module as it is, and a program as ProgramLayers."""
    if isinstance(module, Program):
        return ProgramLayers(module)
    if isinstance(module, nn.Module):
        return module
    raise TypeError(f"{function}: expected a Module or a Program, got {type(module).__name__}")


def _data(value: Value) -> bool:
    return value.constant is not None


def _given(operand: Any, values: dict[int, Any]) -> Any:
    if isinstance(operand, _Reference):
        return values[operand.id]
    if isinstance(operand, list):
        return [_given(each, values) for each in operand]
    return operand


def _reference(operand: Any) -> Any:
    if isinstance(operand, Value):
        return _Reference(operand.id)
    if isinstance(operand, list):
        return [_reference(each) for each in operand]
    return operand


def _call_of(step: Step) -> _Call:
    if step.kind not in ("call", "view", "detach") or step.written:
        raise NotImplementedError(
            f"quantization: expected a program of calls that write into nothing, got {step!r}; export the model for "
            "inference, without branches and loops"
        )
    if step.kind == "detach":
        return _Call(None, None, {"x": _reference(step.inputs[0])}, [step.result.id])
    operands = {name: _reference(operand) for name, operand in step.operands.items()}
    return _Call(
        None, _core.internal_operator(step.name), operands, [value.id for value in step.results]
    )


def _layer_of(step: Step) -> nn.Module | None:
    """The layer of a product of something with a weight that the program holds; None for other steps."""
    if step.name not in _PRODUCTS or step.written or step.kind != "call":
        return None
    x, weight = step.operands["x"], step.operands.get("weight", step.operands.get("y"))
    bias = step.operands.get("bias")
    if not isinstance(x, Value) or _data(x) or not isinstance(weight, Value) or not _data(weight):
        return None
    if bias is not None and not (isinstance(bias, Value) and _data(bias)):
        return None
    numbers, shift = weight.constant, None if bias is None else bias.constant
    if numbers is None:
        return None
    if step.name == "tenon::conv2d":
        return _conv_of(step, numbers, shift)
    if numbers.ndim != 2 or numbers.numel() == 0:
        return None
    if step.name == "tenon::matmul":
        numbers = numbers.transpose(0, 1).contiguous()
    layer = nn.Linear(numbers.shape[1], numbers.shape[0], bias=shift is not None)
    return _with(layer, numbers, shift)


def _conv_of(step: Step, weight: Tensor, bias: Tensor | None) -> nn.Module:
    stride, padding, dilation = (
        _pair(step.operands[name], otherwise)
        for name, otherwise in (("stride", 1), ("padding", 0), ("dilation", 1))
    )
    groups = step.operands["groups"]
    layer = nn.Conv2d(
        weight.shape[1] * groups,
        weight.shape[0],
        tuple(weight.shape[2:]),
        stride,
        padding,
        dilation,
        groups,
        bias=bias is not None,
    )
    return _with(layer, weight, bias)


def _pair(numbers: Any, otherwise: int) -> tuple[int, int]:
    if isinstance(numbers, int):
        return numbers, numbers
    given = list(numbers) or [otherwise]
    return given[0], given[-1]


def _with(layer: Any, weight: Tensor, bias: Tensor | None) -> nn.Module:
    layer.weight = nn.Parameter(weight.detach())
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach())
    return layer


def _plain(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach()


def _insert_linear(graph: ProgramGraph, step: Step, layer: Any, x: Value) -> Value:
    return graph.insert("linear", x, _plain(layer.weight), _plain(layer.bias), before=step)


def _insert_conv(graph: ProgramGraph, step: Step, layer: Any, x: Value) -> Value:
    numbers = (list(layer.stride), list(layer._symmetric), list(layer.dilation), layer.groups)
    weight, bias = _plain(layer.weight), _plain(layer.bias)
    return graph.insert("conv2d", x, weight, bias, *numbers, before=step)


def _insert_blocks(graph: ProgramGraph, step: Step, layer: Any, x: Value) -> Value:
    if layer._missing:
        margins = [0] * (2 * len(x.shape) - 1) + [layer._missing]
        x = graph.insert("pad", x, margins, before=step)
    return graph.insert(
        "linear_blocks",
        x,
        layer.weight,
        layer.format,
        layer.bias,
        activations=layer.activations,
        before=step,
    )


def _insert_float8(graph: ProgramGraph, step: Step, layer: Any, x: Value) -> Value:
    return graph.insert(
        "linear_fp8",
        x,
        layer.weight,
        layer.weight_scale,
        layer.bias,
        layer.x_scale,
        block=layer.block,
        activations="float" if layer.activations == "float" else "float8",
        before=step,
    )


def _rounded(graph: ProgramGraph, step: Step, layer: Any, x: Value) -> Value:
    return graph.insert(
        "quantize_linear", x, layer.scale, layer.zero_point, dtype=tenon.uint8, before=step
    )


def _scaled(
    graph: ProgramGraph, step: Step, sums: Value, dtype: Any, factor: Tensor, bias: Tensor | None
) -> Value:
    wide = wide_dtype(dtype)
    result = graph.insert("cast", sums, wide, before=step)
    result = graph.insert("multiply", result, factor.to(wide), before=step)
    if bias is not None:
        result = graph.insert("add", result, bias.to(wide), before=step)
    return result if wide == dtype else graph.insert("cast", result, dtype, before=step)


def _insert_int8_linear(graph: ProgramGraph, step: Step, layer: Any, x: Value) -> Value:
    codes = _rounded(graph, step, layer, x)
    weight = layer.weight.transpose(0, 1).contiguous()
    sums = graph.insert("matmul_integer", codes, weight, before=step)
    sums = graph.insert("subtract", sums, layer.shift, before=step)
    return _scaled(graph, step, sums, x.dtype, layer.factor, layer.bias)


def _insert_int8_conv(graph: ProgramGraph, step: Step, layer: Any, x: Value) -> Value:
    settings = layer._settings[0]
    codes = _rounded(graph, step, layer, x)
    sums = graph.insert(
        "conv2d_integer",
        codes,
        layer.weight,
        layer.zero_point,
        None,
        list(settings.stride),
        list(settings._symmetric),
        list(settings.dilation),
        settings.groups,
        before=step,
    )
    bias = None if layer.bias is None else layer.bias.reshape([-1, 1, 1])
    return _scaled(graph, step, sums, x.dtype, layer.factor, bias)


_INSERT: dict[type, Callable[[ProgramGraph, Step, Any, Value], Value]] = {
    nn.Linear: _insert_linear,
    nn.Conv2d: _insert_conv,
    BlockLinear: _insert_blocks,
    Float8Linear: _insert_float8,
    Int8Linear: _insert_int8_linear,
    Int8Conv: _insert_int8_conv,
}
