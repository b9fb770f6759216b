# SPDX-License-Identifier: Apache-2.0
"""Module: a callable with parameters.

What belongs to a module is found by looking at its attributes: a Parameter is trained, a Buffer is
saved, a Module is a child. There is no registry beside the attributes that could disagree with
them, and reading `self.weight` costs what reading any attribute costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import tenon
from tenon import Tensor

from .backward_hooks import call_with_backward_hooks
from .hooks import HookHandle
from .parameter import Buffer, Parameter
from .state import LoadReport, load_tensors

M = TypeVar("M", bound="Module")


class Module:
    """Base class of layers and models. Subclasses assign parts in __init__ and define `forward`."""

    training: bool = True
    # Class-level defaults, so that a subclass may leave out super().__init__().
    _has_hooks: bool = False  # any that __call__ must run
    _forward_hooks: dict[int, Callable] | None = None
    _forward_pre_hooks: dict[int, Callable] | None = None
    _backward_hooks: dict[int, Callable] | None = None
    _backward_pre_hooks: dict[int, Callable] | None = None
    _load_pre_hooks: dict[int, Callable] | None = None
    _load_post_hooks: dict[int, Callable] | None = None
    _state_dict_hooks: dict[int, Callable] | None = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._has_hooks:
            return self.forward(*args, **kwargs)
        for hook in tuple((self._forward_pre_hooks or {}).values()):
            replaced = hook(self, args)
            if replaced is not None:
                args = replaced if isinstance(replaced, tuple) else (replaced,)
        if self._backward_hooks is None and self._backward_pre_hooks is None:
            result = self.forward(*args, **kwargs)
        else:
            result = call_with_backward_hooks(self, args, kwargs)
        for hook in tuple((self._forward_hooks or {}).values()):
            replaced = hook(self, args, result)
            if replaced is not None:
                result = replaced
        return result

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            current = vars(self).get(name)
            if isinstance(current, Parameter) and not isinstance(value, Parameter):
                raise TypeError(
                    f"{type(self).__name__}.{name} is a Parameter, and a plain tensor would not be "
                    f"trained; assign Parameter(tensor), or change the values with .copy_(tensor)"
                )
            if isinstance(current, Buffer) and not isinstance(value, (Parameter, Buffer)):
                value = Buffer(value, current.persistent, current.optional)
        object.__setattr__(self, name, value)

    # -- hooks -------------------------------------------------------------------------------------

    def register_forward_hook(self, hook: Callable[[Module, tuple, Any], Any]) -> HookHandle:
        """Call `hook(module, args, result)` after forward; what it returns, unless None, replaces
        the result."""
        return HookHandle(self, "_forward_hooks", hook)

    def register_forward_pre_hook(self, hook: Callable[[Module, tuple], Any]) -> HookHandle:
        """Call `hook(module, args)` before forward; what it returns, unless None, replaces args."""
        return HookHandle(self, "_forward_pre_hooks", hook)

    def register_full_backward_hook(self, hook: Callable[[Module, Any, Any], Any]) -> HookHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the tensors among the
        positional arguments are known; what it returns, unless None, replaces them."""
        return HookHandle(self, "_backward_hooks", hook)

    def register_full_backward_pre_hook(self, hook: Callable[[Module, Any], Any]) -> HookHandle:
        """Call `hook(module, grad_output)` before the gradient passes through the module; what it
        returns, unless None, replaces it."""
        return HookHandle(self, "_backward_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call `hook(module, state, prefix)` on the tensors that state_dict found, to change them
        in place."""
        return HookHandle(self, "_state_dict_hooks", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call `hook(module, state)` on a copy of the mapping before load_state_dict reads it."""
        return HookHandle(self, "_load_pre_hooks", hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call `hook(module, report)` after load_state_dict."""
        return HookHandle(self, "_load_post_hooks", hook)

    # -- parts -------------------------------------------------------------------------------------

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Same as `self.<name> = Buffer(tensor, persistent)`."""
        setattr(self, name, None if tensor is None else Buffer(tensor, persistent))

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Same as `self.<name> = param`."""
        setattr(self, name, param)

    def add_module(self, name: str, module: Module | None) -> None:
        """Same as `self.<name> = module`, for names that are made at run time."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(
                f"add_module: expected a Module for {name!r}, got {type(module).__name__}"
            )
        setattr(self, name, module)

    register_module = add_module

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path; an empty path is this module."""
        module: Any = self
        for i, name in enumerate(target.split(".") if target else ()):
            child = getattr(module, name, None)
            if not isinstance(child, Module):
                where = ".".join(target.split(".")[:i]) or type(self).__name__
                raise AttributeError(
                    f"{type(self).__name__}: expected a module at {target!r}, but {where} has no "
                    f"module {name!r}; it has {[n for n, _ in module.named_children()]}"
                )
            module = child
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        return self._get(target, Parameter)

    def get_buffer(self, target: str) -> Buffer:
        """The buffer at a dotted path."""
        return self._get(target, Buffer)

    def _get(self, target: str, kind: type) -> Any:
        path, _, name = target.rpartition(".")
        value = getattr(self.get_submodule(path), name, None)
        if not isinstance(value, kind):
            raise AttributeError(
                f"{type(self).__name__}: expected a {kind.__name__} at {target!r}, got "
                f"{type(value).__name__}"
            )
        return value

    def named_children(self) -> Iterator[tuple[str, Module]]:
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value

    def children(self) -> Iterator[Module]:
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, each once unless `remove_duplicate` is false."""
        seen: set[int] = set()
        stack = [(prefix, self)]
        while stack:
            name, module = stack.pop()
            if remove_duplicate and id(module) in seen:
                continue
            seen.add(id(module))
            yield name, module
            stack.extend(reversed([(_join(name, n), m) for n, m in module.named_children()]))

    def modules(self) -> Iterator[Module]:
        for _, module in self.named_modules():
            yield module

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Every parameter once, with its dotted path; a shared one under its first name. Without
        `recurse` those of this module alone."""
        return self._named_tensors(Parameter, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        for _, parameter in self.named_parameters("", recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Buffer]]:
        return self._named_tensors(Buffer, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Buffer]:
        for _, buffer in self.named_buffers("", recurse):
            yield buffer

    def _named_tensors(
        self, kind: type, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix, remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in vars(module).items():
                if isinstance(value, kind) and not (remove_duplicate and id(value) in seen):
                    seen.add(id(value))
                    yield _join(path, name), value

    # -- changing everything at once ---------------------------------------------------------------

    def apply(self: M, function: Callable[[Module], Any]) -> M:
        """Call `function` once on every module below this one, then on this one."""
        _apply(self, function, set())
        return self

    def train(self: M, mode: bool = True) -> M:
        """Switch Dropout, BatchNorm and the like to training behaviour: here, and by train() of the
        modules below."""
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self: M) -> M:
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or set them to zero."""
        for parameter in self.parameters():
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad.zero_()

    def to(
        self: M, *args: Any, device: Any = None, dtype: Any = None, non_blocking: bool = False
    ) -> M:
        """Move parameters and buffers in place: `to("toy")`, `to(tenon.float64)`, `to(device=...)`.

        Integer and boolean tensors keep their dtype. Parameter objects stay the same, so an
        optimizer that holds them stays valid. Copies are queued on the device's current stream,
        whatever `non_blocking` says.
        """
        for argument in args:
            if isinstance(argument, tenon.dtype):
                dtype = argument
            else:
                device = argument
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(f"Module.to: expected a floating-point dtype, got {dtype}")
        with tenon.no_grad():
            for tensor in (*self.parameters(), *self.buffers()):
                wanted = dtype if tensor.dtype.is_floating_point else None
                tensor.data = _converted(tensor, device, wanted)
                if tensor.grad is not None:
                    tensor.grad = _converted(tensor.grad, device, wanted)
        return self

    def cpu(self: M) -> M:
        return self.to(device="cpu")

    def type(self: M, dtype: tenon.dtype) -> M:
        """Convert floating-point parameters and buffers to `dtype`."""
        return self.to(dtype=dtype)

    def float(self: M) -> M:
        return self.to(dtype=tenon.float32)

    def double(self: M) -> M:
        return self.to(dtype=tenon.float64)

    def half(self: M) -> M:
        return self.to(dtype=tenon.float16)

    def bfloat16(self: M) -> M:
        return self.to(dtype=tenon.bfloat16)

    def to_empty(self: M, *, device: Any) -> M:
        """Move to `device` without copying: parameters and buffers have undefined values."""
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.data = tenon.empty(tensor.shape, dtype=tensor.dtype, device=device)
        return self

    # -- state -------------------------------------------------------------------------------------

    def state_dict(self, prefix: str = "") -> dict[str, Tensor]:
        """Parameters and persistent buffers by dotted path. They share memory with the module."""
        state: dict[str, Tensor] = {}
        for path, module in self._named_paths(prefix):
            for name, value in vars(module).items():
                if isinstance(value, Parameter) or (isinstance(value, Buffer) and value.persistent):
                    state[_join(path, name)] = value.detach()
            for hook in tuple((module._state_dict_hooks or {}).values()):
                hook(module, state, path)
        return state

    def load_state_dict(
        self,
        state: Mapping[str, Tensor],
        strict: bool = True,
        mismatched: str = "refuse",
    ) -> LoadReport:
        """Copy `state` into this module. Nothing is copied if anything does not fit.

        With `strict=False` missing and unexpected names are reported instead of refused. A tensor
        of the wrong shape is refused, unless `mismatched="skip"`.
        """
        loaders = [m for m in self.modules() if m._load_pre_hooks or m._load_post_hooks]
        if loaders:
            state = dict(state)
            for module in loaders:
                for hook in tuple((module._load_pre_hooks or {}).values()):
                    hook(module, state)
        optional = {name for name, buffer in self.named_buffers() if buffer.optional}
        report = load_tensors(
            self.state_dict(),
            state,
            strict,
            f"{type(self).__name__}.load_state_dict",
            optional,
            mismatched,
        )
        for module in loaders:
            for hook in tuple((module._load_post_hooks or {}).values()):
                hook(module, report)
        return report

    def _named_paths(self, prefix: str) -> Iterator[tuple[str, Module]]:
        """Like named_modules, but a module that is used twice is seen under both names: a file that
        names all of them loads into a model that shares none."""
        yield prefix, self
        for name, child in self.named_children():
            yield from child._named_paths(_join(prefix, name))

    # -- text --------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What repr shows between the parentheses: the settings of a layer."""
        return ""

    def __repr__(self) -> str:
        lines = [
            f"({name}): " + repr(child).replace("\n", "\n  ")
            for name, child in self.named_children()
        ]
        inner = self.extra_repr()
        if lines:
            inner = "\n  " + "\n  ".join(([inner] if inner else []) + lines) + "\n"
        return f"{type(self).__name__}({inner})"


def _apply(module: Module, function: Callable[[Module], Any], seen: set[int]) -> None:
    seen.add(id(module))
    for child in module.children():
        if id(child) not in seen:
            _apply(child, function, seen)
    function(module)


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _converted(tensor: Tensor, device: Any, dtype: Any) -> Tensor:
    tensor = tensor.detach()
    if dtype is not None:
        tensor = tensor.to(dtype)
    return tensor if device is None else tensor.to(device)
