# SPDX-License-Identifier: Apache-2.0
"""The graph of a `.pt2` file, call by call, told to a builder of programs."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.jit import structures
from tenon.jit.program import PASSES, Program
from tenon.torch import _lines
from tenon.torch._archive import DTYPES, Archive, dtype_of, size_at, symbol_of
from tenon.torch._report import Report, remember

_MOST: Final = 1 << 20  # of a dimension without an upper bound
_PLACE = re.compile(r'File "([^"]+)", line (\d+)')
_TOLD_ERRORS = (_lines.Refused, ValueError, TypeError, RuntimeError, LookupError)
# Calls whose results may show the memory of their argument.
_VIEWS: Final = frozenset(
    "alias as_strided chunk contiguous detach diagonal expand expand_as flatten getitem movedim narrow numpy_T permute reshape "
    "select slice split split_with_sizes squeeze t to transpose mT unbind unflatten unfold unsqueeze view view_as dropout".split()
)
_NUMBERS: Final[dict[str, Callable[..., Any]]] = {
    **{
        f"_operator.{name}": getattr(operator, name)
        for name in "add sub mul floordiv mod neg pow eq ne lt le gt ge truediv and_ or_".split()
    },
    "torch.sym_max": max,
    "torch.sym_min": min,
    "torch.sym_float": float,
    "torch.sym_not": operator.not_,
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.trunc": math.trunc,
}


class _Missing:
    """The value of a call that could not be told, and of those that read it."""


_MISSING: Final = _Missing()


def load(path: str, *, name: str | None, gradients: bool) -> Program:
    """As `tenon.torch.load`, in a process that needs no PyTorch."""
    archive = Archive(path)
    entry = Report(name or archive.name)
    try:
        dimensions = _dimensions(archive)
        rows: Sequence[Mapping[str, int]] = [{}]
        if dimensions:
            names = [each[0] for each in dimensions]
            rows = [dict(zip(names, row, strict=True)) for row in _core.program_samples(dimensions)]
        built = []
        with tenon.set_grad_enabled(gradients):
            for row in rows:
                native, arguments, results = _Walk(archive, row, entry).program()
                built.append((native.optimize(",".join(PASSES)), arguments, results))
        native, arguments, results = built[0]
        entry.steps, entry.leaves = native.nsteps, len(native.leaves())
        if dimensions:
            native = _core.program_unify(dimensions, [each[0] for each in built], [""] * len(built))
        return Program(native, arguments, results)
    except (LookupError, TypeError, AttributeError, ArithmeticError, _lines.Refused) as error:
        raise ValueError(
            f"torch.load: {archive.name}: expected an exported program, found a part that is none: {error!r}"
        ) from None
    finally:
        remember(entry)


def _dimensions(archive: Archive) -> list[tuple[str, int, int, int, int]]:
    """(name, min, max, multiple, recorded) of each symbol in the sizes of inputs."""
    ranges = archive.content["range_constraints"]
    found: dict[str, tuple[str, int, int, int, int]] = {}
    for spec in archive.module["signature"]["input_specs"]:
        arg = spec.get("user_input", {}).get("arg", {})
        if "as_tensor" not in arg:
            continue
        shown = arg["as_tensor"]["name"]
        for axis, size in enumerate(archive.graph["tensor_values"][shown]["sizes"]):
            if "as_int" in size:
                continue
            symbol = symbol_of(size)
            if symbol is None:
                raise NotImplementedError(
                    f"torch.load: axis {axis} of input `{shown}` is a derived dimension; only dimensions that stand "
                    f"alone can be told, so export it with a Dim of its own, or Dim.AUTO"
                )
            bounds = ranges.get(symbol) or {}
            low = max(1, bounds.get("min_val") or 1)
            high = min(bounds.get("max_val") or _MOST, _MOST)
            hint = (size["as_expr"].get("hint") or {}).get("as_int", 4)
            for number in (low, high, hint):
                if type(number) is not int:
                    raise ValueError(
                        f"torch.load: expected whole numbers as bounds of the dimension {symbol}, got {number!r}"
                    )
            found.setdefault(symbol, (symbol, low, high, 1, min(max(hint, low), high)))
    return list(found.values())


class _Walk:
    def __init__(self, archive: Archive, sizes: Mapping[str, int], entry: Report) -> None:
        self._archive = archive
        self._sizes = sizes
        self._entry = entry
        self._builder = _core.ProgramBuilder(None)
        self._values: dict[str, Any] = {}
        self._targets: dict[
            str, tuple[str, Tensor]
        ] = {}  # what may be written, by its value's name
        self._written: set[str] = set()
        self._shown: set[str] = (
            set()
        )  # values of which views were taken, and views, by their first names
        self._same: dict[str, str] = {}
        self._failures: dict[str, str] = {}
        entry.kinds.clear()
        entry.converted.clear()

    def program(self) -> tuple[_core.Program, list[Any], list[Any]]:
        given = self._add_inputs()
        for node in self._archive.graph["nodes"]:
            self._node(node)
        if self._failures:
            self._entry.refused = dict(self._failures)
            kinds = "".join(f"\n  {kind}: {why}" for kind, why in self._failures.items())
            raise NotImplementedError(
                f"torch.load: {self._entry.name}: {len(self._failures)} of {len(self._entry.kinds)} kinds of calls "
                f"cannot be told in operators:{kinds}\nPyTorch, where it is installed, takes more calls apart; or save "
                f"what exported.run_decompositions() gives"
            )
        returned = self._results()
        calls = {each["fqn"]: each for each in self._archive.module["module_call_graph"]}
        if "" not in calls:
            raise ValueError(
                f"torch.load: expected the signature of the whole program in its module_call_graph, got those of "
                f"{sorted(calls)}; save the file again"
            )
        signature = calls[""]["signature"]
        tensors: list[Tensor] = []
        arguments, keywords = _tree(signature["in_spec"], given)
        inputs = structures.flatten((*arguments, *keywords.values()), [])
        outputs = structures.flatten(_tree(signature["out_spec"], returned), tensors)
        return self._builder.finish(tensors), inputs, outputs

    def _shape(self, meta: Any) -> list[int]:
        sizes = [size_at(each, self._sizes) for each in meta["sizes"]]
        if None in sizes:
            raise NotImplementedError(f"torch.load: a size of an input is {meta['sizes']}")
        return [int(each) for each in sizes if each is not None]

    def _add_inputs(self) -> list[Any]:
        given: list[Any] = []
        metas = self._archive.graph["tensor_values"]
        for spec in self._archive.module["signature"]["input_specs"]:
            ((kind, content),) = spec.items()
            if kind == "user_input":
                arg = content["arg"]
                if "as_tensor" not in arg:
                    given.append(_constant(arg))
                    continue
                name = arg["as_tensor"]["name"]
                value = self._builder.input(dtype_of(metas[name]), self._shape(metas[name]))
                given.append(value)
                self._targets[name] = (name, value)
            elif kind == "constant_input":
                given.append(_constant(content["value"]))
                continue
            elif kind in ("parameter", "buffer", "tensor_constant"):
                name, weight = content["arg"]["name"], content[f"{kind}_name"]
                if weight not in self._archive.weights:
                    raise ValueError(f"torch.load: the exported program has no tensor `{weight}`")
                value = self._builder.leaf(self._archive.weights[weight], weight)
                self._targets[name] = (weight, value)
            else:
                raise NotImplementedError(
                    f"torch.load: an input of the exported program is of kind {kind}; only tensors, numbers and weights "
                    f"can be told"
                )
            self._values[name] = value
        return given

    def _node(self, node: Any) -> None:
        target, names = node["target"], _names(node["outputs"])
        found = _PLACE.findall(node["metadata"].get("stack_trace") or "")
        self._builder.locate(found[-1][0] if found else "", int(found[-1][1]) if found else 0)
        kind = target.removeprefix("torch.ops.").removeprefix("aten.").removesuffix(".default")
        is_number = target in _NUMBERS
        if not is_number:
            self._entry.kinds[kind] += 1
        try:
            given = {each["name"]: self._argument(each["arg"]) for each in node["inputs"]}
            if _is_missing(list(given.values())):
                why = _lines.reason(_functional(kind))
                if why is not None and not is_number:
                    self._failures.setdefault(kind, why)
                results: list[Any] = [_MISSING] * len(names)
            elif is_number:
                results = [_NUMBERS[target](*given.values())]
            else:
                results = self._told(target, kind, node, given, names)
        except _TOLD_ERRORS as error:
            self._failures.setdefault(kind, str(error) or type(error).__name__)
            results = [_MISSING] * len(names)
        for name, value in zip(names, results, strict=False):
            for each in name if isinstance(name, list) else [name]:
                if each is not None and (not isinstance(name, list) or value is _MISSING):
                    self._values[each] = value

    def _root(self, name: str) -> str:
        """The first name of a tensor that calls in place have given others."""
        return self._same.get(name, name)

    def _told(
        self, target: str, kind: str, node: Any, given: dict[str, Any], names: Sequence[Any]
    ) -> list[Any]:
        if not target.startswith("torch.ops.aten."):
            raise _lines.Refused("it is no ATen call")
        if kind.startswith("_assert_async"):
            raise _lines.Refused(
                "it checks data, and a program cannot; check the inputs before the call"
            )
        plain = _functional(kind)
        written = None
        if plain != kind:
            written = self._root(node["inputs"][0]["arg"]["as_tensor"]["name"])
            if written in self._shown:
                raise _lines.Refused("it writes into memory that another value shows")
        result = _lines.tell(self._builder.call, plain, [], given)
        if names and isinstance(names[0], list):  # one list of tensors
            results = [result]
            for name, value in zip(names[0], result, strict=True):
                self._values[name] = value
        else:
            results = list(result) if isinstance(result, list) else [result]
        results = [
            self._fitted(kind, value, name)
            if isinstance(value, Tensor) and isinstance(name, str)
            else value
            for name, value in zip(names, results, strict=False)
        ]
        if plain.partition(".")[0] in _VIEWS:
            for each in node["inputs"][:1]:
                if "as_tensor" in each["arg"]:
                    self._shown.add(self._root(each["arg"]["as_tensor"]["name"]))
            for name in names:
                self._shown.update(name if isinstance(name, list) else [name])
        if written is not None:
            if tuple(results[0].shape) != tuple(self._values[written].shape):
                raise _lines.Refused("it writes a result of another shape")
            self._same[names[0]] = written
            for name in (written, *(n for n, root in self._same.items() if root == written)):
                self._values[name] = results[0]
            self._written.add(written)
        return results

    def _fitted(self, kind: str, value: Tensor, name: str) -> Tensor:
        meta = self._archive.graph["tensor_values"].get(name)
        if meta is None:
            return value
        said = [size_at(each, self._sizes) for each in meta["sizes"]]
        shape = list(value.shape)
        if len(said) != len(shape) or any(
            size not in (None, own) for size, own in zip(said, shape, strict=True)
        ):
            raise RuntimeError(
                f"{kind} gives {shape} here and {said} in PyTorch; its line in opdefs/aten is wrong"
            )
        wanted = getattr(tenon, dtype_of(meta))
        if value.dtype == wanted:
            return value
        self._entry.converted[kind] += 1
        return self._builder.call("cast", value, wanted)

    def _argument(self, arg: Any) -> Any:
        ((kind, value),) = arg.items()
        if kind == "as_tensor":
            return self._values[value["name"]]
        if kind == "as_tensors":
            return [self._values[each["name"]] for each in value]
        if kind == "as_optional_tensors":
            return [self._argument(each) for each in value]
        if kind in ("as_optional_tensor", "as_sym_int", "as_sym_float", "as_sym_bool"):
            return self._symbol(value)
        if kind in ("as_sym_ints", "as_sym_floats"):
            return [self._symbol(each) for each in value]
        if kind == "as_scalar_type":
            if value not in DTYPES:
                raise _lines.Refused(
                    f"dtype number {value} is none of {', '.join(DTYPES.values())}"
                )
            return getattr(tenon, DTYPES[value])
        if kind in ("as_memory_format", "as_layout"):
            return None  # of strides alone
        if kind == "as_device":
            if value["type"] != "cpu":
                raise _lines.Refused(
                    f"it names the device {value['type']}; export the model on the CPU"
                )
            return None
        return _constant(arg)

    def _symbol(self, value: Any) -> Any:
        if "as_name" in value:
            return self._values[value["as_name"]]
        return self._argument(value)

    def _results(self) -> list[Any]:
        returned: list[Any] = []
        ends: dict[str, Tensor] = {}
        for spec in self._archive.module["signature"]["output_specs"]:
            ((kind, content),) = spec.items()
            if kind == "user_output":
                returned.append(self._argument(content["arg"]))
            elif kind in ("buffer_mutation", "user_input_mutation"):
                value = self._values[content["arg"]["name"]]
                key = "buffer_name" if kind == "buffer_mutation" else "user_input_name"
                ends[content[key]] = value
            else:
                raise NotImplementedError(
                    f"torch.load: a result is of kind {kind}; programs of inference alone can be told"
                )
        targets = {weight: tensor for weight, tensor in self._targets.values()}
        for name in self._written & set(self._targets):
            ends[self._targets[name][0]] = self._values[name]
        if ends:  # what is returned or written may show memory that another write changes
            call = self._builder.call
            returned = [call("clone", e) if isinstance(e, Tensor) else e for e in returned]
            ends = {name: call("clone", value) for name, value in ends.items()}
            self._entry.writes.clear()
            for name, value in ends.items():
                call("clone", value, out=targets[name])
                self._entry.writes.append(name)
        return returned


def _functional(kind: str) -> str:
    """ "add.Tensor" of "add_.Tensor"."""
    name, dot, overload = kind.partition(".")
    is_written = name.endswith("_") and not name.endswith("__")
    return f"{name[:-1]}{dot}{overload}" if is_written else kind


def _names(outputs: Any) -> list[Any]:
    """Of the values of a call: texts, and lists of them."""
    names: list[Any] = []
    for each in outputs:
        ((kind, value),) = each.items()
        if kind == "as_tensor":
            names.append(value["name"])
        elif kind == "as_tensors":
            names.append([item["name"] for item in value])
        elif kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
            names.append(value.get("as_name"))
        else:
            names.append(None)
    return names


def _constant(arg: Any) -> Any:
    ((kind, value),) = arg.items()
    if kind == "as_none":
        return None
    if kind in ("as_float", "as_floats"):
        return [float(each) for each in value] if isinstance(value, list) else float(value)
    if kind in ("as_int", "as_ints", "as_bool", "as_bools", "as_string", "as_strings"):
        return value
    raise _lines.Refused(f"an argument is of kind {kind}")


def _is_missing(values: Any) -> bool:
    if isinstance(values, list):
        return any(_is_missing(each) for each in values)
    return values is _MISSING


def _tree(spec: str, leaves: Sequence[Any]) -> Any:
    """Values in the containers that PyTorch wrote down."""
    version, content = json.loads(spec)
    if version != 1:
        raise ValueError(f"torch.load: expected containers of version 1, got {version}")
    slots = _places(content)
    if slots != len(leaves):
        raise ValueError(
            f"torch.load: expected containers of {len(leaves)} values, got slots for {slots}"
        )
    return _container(content, iter(leaves))


def _places(spec: Any) -> int:
    """How many values its containers hold."""
    return 1 if spec["type"] is None else sum(map(_places, spec["children_spec"]))


def _container(spec: Any, leaves: Any) -> Any:
    kind = spec["type"]
    if kind is None:
        return next(leaves)
    parts = [_container(each, leaves) for each in spec["children_spec"]]
    context = json.loads(spec["context"]) if isinstance(spec["context"], str) else spec["context"]
    if kind == "builtins.list":
        return parts
    if kind in ("builtins.dict", "collections.OrderedDict") or (
        isinstance(context, list)
        and len(context) == len(parts)
        and not kind.startswith("builtins.")
    ):
        keys = context if isinstance(context, list) else []
        return dict(zip(keys, parts, strict=True))
    return tuple(parts)
