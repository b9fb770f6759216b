# SPDX-License-Identifier: Apache-2.0
"""What a call of PyTorch on the device becomes: operators by its line, else PyTorch's decomposition, else the CPU with copies."""

from __future__ import annotations

import dis
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from tenon import _core
from tenon.host.fallback import policy_of
from tenon.torch import _device_backward, _device_native, _device_recurrent, _lines
from tenon.torch._convert import dtype_name
from tenon.torch._device_record import Record, Value
from tenon.torch._lines import Refused
from tenon.torch._report import DeviceReport
from tenon.torch._walk import op_name

# Calls that have no line: results that a program cannot have, writes, gradients.
_NATIVE: Mapping[str, Callable[..., Any]] = {
    **_device_native.CALLS,
    **_device_backward.CALLS,
    **_device_recurrent.CALLS,
}
# What a call is for PyTorch elsewhere, where it has another name on devices of others.
_ELSEWHERE = {"convolution_overrideable": "convolution", "_index_put_impl_": "index_put_"}
# Calls that PyTorch leaves to the device as a whole.
_UNKNOWN_TO_META = (
    "convolution_backward_overrideable",
    "_scaled_dot_product_fused_attention_overrideable",
    "_scaled_dot_product_fused_attention_overrideable_backward",
    *_device_recurrent.CALLS,
)
# Errors by which a line or an operator's rules say that they do not take a call. PyTorch may know another way, or raises an
# error of its own.
_NOT_TAKEN = (Refused, NotImplementedError, TypeError, ValueError, IndexError)


class Form(NamedTuple):
    """A call as PyTorch names it, and the call without writes that it is a form of."""

    op: Any  # torch.ops.aten.add.out
    base: Any  # torch.ops.aten.add.Tensor; None: PyTorch has none
    name: str  # "add.Tensor", by which lines and functions are found
    names: tuple[
        str, ...
    ]  # of the arguments of the base, and which of the call's arguments they are
    sources: tuple[int, ...]
    targets: tuple[int, ...]  # arguments that get the results
    may_resize: bool  # `out=`
    written: tuple[int, ...]  # arguments that are written besides


class Dispatcher:
    """Called for a call that has no tape: (name, overload, arguments) to (results, tape, whether the tape depends on shapes,
    whether on numbers that were given as tensors, bits of arguments that are numbers on which it does not depend)."""

    def __init__(self, torch: Any, native: Any, kind: str) -> None:
        self.report = DeviceReport(kind)
        self._torch, self._native, self._kind = torch, native, kind
        self._dtypes = {
            native.number_of(dtype): dtype
            for dtype in vars(torch).values()
            if isinstance(dtype, torch.dtype)
        }
        self._formats = {
            0: torch.contiguous_format,
            1: torch.preserve_format,
            2: torch.channels_last,
            3: torch.channels_last_3d,
        }
        self._decomposed = threading.local()
        self._warned: set[str] = set()
        self.form = cache(self._form)

    def __call__(self, name: str, overload: str, given: Sequence[Any]) -> tuple[Any, ...]:
        form = self.form(name, overload)
        schema = form.op._schema
        values = [
            self._converted(argument.real_type, value)
            for argument, value in zip(schema.arguments, given, strict=True)
        ]
        try:
            return self._told(form, values)
        except _NOT_TAKEN as error:
            reason = str(error) or type(error).__name__
        found = self._by_decomposition(form, values)
        if found is None:
            found = self._on_cpu(form, values, reason)
        return found, None, False, False, 0

    # -- forms --------------------------------------------------------------------------------------------

    def _form(self, name: str, overload: str) -> Form:
        namespace, _, packet_name = name.partition("::")
        packets = getattr(self._torch.ops, namespace)
        op = getattr(getattr(packets, packet_name), overload or "default")
        arguments = op._schema.arguments
        written = [
            index
            for index, each in enumerate(arguments)
            if each.alias_info is not None and each.alias_info.is_write
        ]
        kept = [index for index in range(len(arguments)) if index not in written]
        base, sources, may_resize = op, tuple(range(len(arguments))), False
        targets, besides = tuple(written), tuple[int, ...]()
        if written and all(arguments[index].kwarg_only for index in written):
            wanted = [(arguments[index].name, str(arguments[index].type)) for index in kept]
            base, sources, may_resize = self._like(packet_name, packets, wanted), tuple(kept), True
        elif written and (written != [0] or not packet_name.endswith("_")):
            targets, besides = (), targets
        elif written:
            shown = _ELSEWHERE.get(packet_name, packet_name)
            plain = getattr(packets, shown.removesuffix("_"), None)
            base = getattr(plain, overload or "default", None)
        called = op if base is None else base
        shown = op_name(called)
        if base is None and not may_resize:
            stem, dot, rest = shown.partition(".")
            shown = stem.removesuffix("_") + dot + rest
        packet, dot, rest = shown.partition(".")
        shown = _ELSEWHERE.get(packet, packet) + dot + rest
        names = tuple(arguments[index].name for index in sources)
        return Form(op, base, shown, names, sources, targets, may_resize, besides)

    @staticmethod
    def _like(packet_name: str, packets: Any, wanted: list[tuple[str, str]]) -> Any:
        packet = getattr(packets, packet_name)
        for overload in packet.overloads():
            each = getattr(packet, overload)
            if [(one.name, str(one.type)) for one in each._schema.arguments] == wanted:
                return each
        return None

    def _converted(self, kind: Any, value: Any) -> Any:
        """An argument as Python writes it: dtypes, layouts and memory formats are numbers where arguments are boxed."""
        text = str(kind)
        if not isinstance(value, int) or isinstance(value, bool):
            return value
        if "ScalarType" in text:
            return self._dtypes[value]
        if "MemoryFormat" in text:
            return self._formats[value]
        if "Layout" in text:
            return self._torch.strided if value == 0 else self._torch.sparse_coo
        return value

    # -- operators ----------------------------------------------------------------------------------------

    def _told(self, form: Form, values: list[Any]) -> tuple[Any, ...]:
        torch = self._torch
        target = values[form.targets[0]] if form.targets else None
        record = Record(
            torch,
            self._native,
            self._native.current_device(),
            target.dtype if isinstance(target, torch.Tensor) else None,
        )
        expected = self._expected(form, values)
        arguments = []
        for index in form.sources:
            value, reference = values[index], ("a", index)
            argument = form.op._schema.arguments[index]
            if "Tensor" in str(argument.type) and isinstance(value, (int, float, complex)):
                arguments.append(record.number(value, reference))
            elif isinstance(value, float) and index < 64 and argument.name in _free(form.name):
                arguments.append(record.free_number(value, index))
            else:
                arguments.append(record.wrapped(value, reference))
        function = _NATIVE.get(form.name)
        if function is not None:
            record.by_value |= record.has_numbers and form.name not in _device_native.FREE
            result = function(record, *arguments)
        else:
            if form.written or not form.op.name().startswith("aten::"):
                raise Refused("it writes arguments" if form.written else "it is no ATen call")
            given = dict(zip(form.names, arguments, strict=True))
            record.by_value |= record.has_numbers and _reads_numbers(form.name)
            result = _lines.tell(record, form.name, (), given)
        if result is None or isinstance(result, (bool, int, float, complex)):
            return (() if result is None else (result,)), None, False, False, 0
        found = list(result) if isinstance(result, (list, tuple)) else [result]
        kinds = [str(each.type) for each in form.op._schema.returns]
        if not all(
            each is None or isinstance(each, Value) or (type(each) is int and kind == "int")
            for each, kind in zip(found, kinds + ["Tensor"] * len(found), strict=False)
        ):
            raise Refused("its line gives a number for a tensor")
        results = self._finished(form, values, record, found, expected)
        is_list = _gives_list(form)
        kept = [] if form.targets else found
        tape = record.tape(kept, is_list=is_list, may_resize=form.may_resize)
        if is_list:
            results = (results,)
        self.report.operators[form.name] += 1
        return results, tape, record.by_shape, record.by_value, record.free

    def _finished(
        self, form: Form, values: list[Any], record: Record, found: list[Any], expected: list[Any]
    ) -> Any:
        """Results in PyTorch's dtypes, written where the form says."""
        wanted = len(form.targets) if form.targets else len(form.op._schema.returns)
        is_list = _gives_list(form)
        if not is_list and len(found) < wanted:
            raise Refused(f"its line gives {len(found)} of {wanted} results")
        if not is_list:
            del found[wanted:]
        taken: set[Any] = set()
        for index, each in enumerate(found):
            if not isinstance(each, Value):  # nothing, or a number
                continue
            dtype = expected[index] if index < len(expected) else None
            if form.targets:
                dtype = values[form.targets[index]].dtype
            if dtype is not None and each.tensor.dtype != dtype:
                each = record("cast", each, dtype_name(dtype))
            each = record.own(each)
            if each.reference in taken:
                each = record("clone", each)
            taken.add(each.reference)
            found[index] = each
        for value, target in record.writes:
            values[target].copy_(value.tensor)
        if not form.targets:
            return [each.tensor if isinstance(each, Value) else each for each in found]
        for each, index in zip(found, form.targets, strict=True):
            record.writes.append((each, index))
            self._write(values[index], each.tensor, may_resize=form.may_resize)
        return tuple(values[index] for index in form.targets)

    def _write(self, target: Any, result: Any, *, may_resize: bool) -> None:
        if target.shape != result.shape:
            if not may_resize:
                raise RuntimeError(
                    f"expected an output of shape {list(result.shape)}, got {list(target.shape)}"
                )
            if target.numel():
                warnings.warn(
                    f"An output of shape {list(target.shape)} was resized to {list(result.shape)}. Reuse it after resize_(0), "
                    f"or give one of that shape.",
                    UserWarning,
                    stacklevel=2,
                )
            target.resize_(result.shape)
        target.copy_(result)

    def _expected(self, form: Form, values: list[Any]) -> list[Any]:
        """The dtypes that PyTorch gives the results, where it can say so without data, and its errors."""
        if form.targets or form.base is None or form.name in _UNKNOWN_TO_META:
            return []
        torch = self._torch

        def on_meta(value: Any) -> Any:
            if isinstance(value, torch.Tensor) and value.device.type != "cpu":
                return torch.empty_strided(
                    value.shape, value.stride(), dtype=value.dtype, device="meta"
                )
            if isinstance(value, torch.device):
                return torch.device("meta")
            return [on_meta(each) for each in value] if isinstance(value, list) else value

        base = form.base
        packet = base.overloadpacket.__name__
        if packet in _ELSEWHERE:
            base = getattr(getattr(torch.ops.aten, _ELSEWHERE[packet]), base._overloadname)
        args, keywords = _split(base, [on_meta(each) for each in values])
        try:
            made = base(*args, **keywords)
        except NotImplementedError:  # PyTorch cannot say
            return []
        except RuntimeError as error:
            if "data-dependent" in str(error) or "meta" in str(error).lower():
                return []
            raise
        listed = made if isinstance(made, (list, tuple)) else [made]
        return [getattr(each, "dtype", None) for each in listed]

    # -- PyTorch's own ways -------------------------------------------------------------------------------

    def _by_decomposition(self, form: Form, values: list[Any]) -> Any:
        """None: there is none. It calls other calls on the device."""
        from torch._decomp import decomposition_table

        decomposition = decomposition_table.get(form.base)
        under_way = self._decomposed.__dict__.setdefault("names", set())
        if decomposition is None or form.name in under_way:
            return None
        args, keywords = _split(form.base, [values[index] for index in form.sources])
        under_way.add(form.name)
        try:
            result = decomposition(*args, **keywords)
        except NotImplementedError:
            return None
        finally:
            under_way.discard(form.name)
        if result is NotImplemented:
            return None
        self.report.decomposed[form.name] += 1
        if not form.targets:
            return result if isinstance(result, (list, tuple)) and _is_many(form) else (result,)
        listed = result if isinstance(result, (list, tuple)) else [result]
        for each, index in zip(listed, form.targets, strict=True):
            self._write(values[index], each, may_resize=form.may_resize)
        return tuple(values[index] for index in form.targets)

    def _on_cpu(self, form: Form, values: list[Any], reason: str) -> Any:
        torch = self._torch
        packet = form.op.overloadpacket.__name__
        for each in form.op._schema.returns:
            if each.alias_info is not None and not each.alias_info.is_write:
                raise NotImplementedError(
                    f"[{form.op.name()}] its result shares memory with its argument, which the CPU cannot do for the device "
                    f"{self._kind!r} ({reason})"
                )
        policy = policy_of(self._kind, packet)
        if policy == "deny":
            raise _core.PolicyError(
                f"[{form.op.name()}] the device {self._kind!r} has no way to compute this call ({reason}), and the CPU is denied by "
                f"the fallback policy; allow it with {self._kind}:{packet}=allow"
            )
        if policy == "warn_once" and form.name not in self._warned:
            self._warned.add(form.name)
            warnings.warn(
                f"[{form.op.name()}] runs on the CPU, with copies, for the device {self._kind!r}: {reason} (said once; see "
                f"tenon.torch.report())",
                RuntimeWarning,
                stacklevel=2,
            )
        moved: dict[int, Any] = {}
        copied = [0]
        device: list[Any] = []

        def to_cpu(value: Any) -> Any:
            if isinstance(value, torch.Tensor) and value.device.type != "cpu":
                device.append(value.device)
                if id(value) not in moved:
                    moved[id(value)] = value.cpu()
                    copied[0] += value.numel() * value.element_size()
                return moved[id(value)]
            if isinstance(value, torch.device):
                device.append(value)
                return torch.device("cpu")
            if isinstance(value, torch.Generator):
                return None  # draws from the CPU's default generator
            if isinstance(value, (list, tuple)):
                return [to_cpu(each) for each in value]
            return value

        op = form.op
        if packet in _ELSEWHERE and packet != "_index_put_impl_":
            op = getattr(getattr(torch.ops.aten, _ELSEWHERE[packet]), op._overloadname)
        elif packet == "convolution_backward_overrideable":
            op, values = torch.ops.aten.convolution_backward.default, list(values)
            values.insert(3, [values[8] * values[2].shape[1] if values[6] else values[2].shape[0]])
        args, keywords = _split(op, [to_cpu(each) for each in values])
        results = op(*args, **keywords)

        def back(value: Any) -> Any:
            for index in (*form.targets, *form.written):
                if moved.get(id(values[index])) is value:
                    return values[index]
            if isinstance(value, torch.Tensor):
                copied[0] += value.numel() * value.element_size()
                return value.to(device[0])
            return [back(each) for each in value] if isinstance(value, (list, tuple)) else value

        # What an argument without a sign of it is written to as well: running statistics.
        written = [*form.targets, *form.written, *_device_native.HIDDEN_WRITES.get(form.name, ())]
        for index in written:
            target = values[index]
            for each in target if isinstance(target, (list, tuple)) else [target]:
                if isinstance(each, torch.Tensor) and id(each) in moved:
                    self._write(each, moved[id(each)], may_resize=True)
                    copied[0] += each.numel() * each.element_size()
        self.report.count_on_cpu(form.op.name(), copied[0], reason)
        if results is None:
            return ()
        if len(form.op._schema.returns) == 1:
            return (back(results),)
        return tuple(back(each) for each in results)


def _gives_list(form: Form) -> bool:
    returns = form.op._schema.returns
    return not form.targets and len(returns) == 1 and str(returns[0].type).startswith("List")


def _is_many(form: Form) -> bool:
    return len(form.op._schema.returns) > 1


def _split(op: Any, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments by position, and those that Python takes by name alone."""
    args: list[Any] = []
    keywords = {}
    for argument, value in zip(op._schema.arguments, values, strict=True):
        if argument.kwarg_only:
            keywords[argument.name] = value
        else:
            args.append(value)
    return args, keywords


def _read(name: str) -> frozenset[str] | None:
    """The arguments that a line chooses by; None: it may look at all."""
    call = _lines.CALLS.get(name)
    if call is None or any(case.native for case in call.cases):
        return None
    return frozenset(
        each.argval
        for case in call.cases
        if case.when is not None
        for each in dis.get_instructions(case.when)
        if "FAST" in each.opname
    )


@cache
def _reads_numbers(name: str) -> bool:
    """Whether a line chooses by the value of a number that PyTorch may give as a tensor."""
    read = _read(name)
    if read is None:
        return True
    return any(
        each.type.startswith("Tensor") and each.name in read for each in _lines.PARAMETERS[name]
    )


@cache
def _free(name: str) -> frozenset[str]:
    """Arguments that are numbers and that a line hands on as they are."""
    if name in _NATIVE:
        return _device_native.FREE.get(name, frozenset())
    read = _read(name)
    if read is None:
        return frozenset()
    kinds = ("Scalar", "float")
    return frozenset(
        each.name
        for each in _lines.PARAMETERS[name]
        if each.type.startswith(kinds) and each.name not in read
    )
