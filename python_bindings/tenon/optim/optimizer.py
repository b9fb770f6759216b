# SPDX-License-Identifier: Apache-2.0
"""What all optimizers share: parameter groups, state, saving."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import tenon
from tenon import Tensor, _core
from tenon._tensor.complex_parts import parts

from . import lists
from .conditional import ConditionalStep, runs_behind_host
from .lists import TensorList
from .master_weights import is_low_precision, master_weight
from .rows import Rows, is_rows


@dataclass
class Zero:
    """A rate of 0: the numbers of the schedules that multiply by 0, and what the others multiply
    by."""

    schedules: set[int]
    others: float


@dataclass
class SharedRates:
    """What the schedules of one optimizer know of each other."""

    have_stepped: bool = False
    zeros: dict[int, Zero] = field(default_factory=dict)  # of groups


# Parameters by which PyTorch's optimizers are told how to compute an update, and what they may say here: every update is
# one fused operator for each parameter, small parameters are updated together unless `foreach` is False, and no update is
# a part of a graph.
_HINTS: dict[str, tuple[Any, ...]] = {
    "foreach": (None, False, True),
    "fused": (None, True),
    "differentiable": (None, False),
}
_REASONS = {
    "foreach": "small parameters are updated together or one by one",
    "fused": "each update is one fused operator",
    "differentiable": "no gradient passes through an update; use tenon.func with parameters as arguments",
}


def _checks_hints(init: Callable[..., None]) -> Callable[..., None]:
    own = inspect.signature(init).parameters
    hints = [name for name in _HINTS if name not in own]

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in hints:
            if name in kwargs:
                value = kwargs.pop(name)
                if value not in _HINTS[name]:
                    expected = " or ".join(map(str, _HINTS[name]))
                    raise NotImplementedError(
                        f"{type(self).__name__}: expected {name} to be {expected}, got {value!r}: {_REASONS[name]}"
                    )
                if name == "foreach":
                    self.updates_together = value is not False
        init(self, *args, **kwargs)

    return checked


class Optimizer:
    """Updates parameters from their gradients.

    `params` is an iterable of parameters, or of dicts {"params": ..., "lr": ...} whose options
    differ from the defaults. Options live in `param_groups` and may be changed between steps. Every
    group has two options more: `maximize` follows the gradient up instead of down; with
    `multi_precision` a parameter in float16 or bfloat16 has a float32 copy among its state, its
    master weight, which is updated, and the parameter becomes that, rounded. Complex parameters are
    updated as their real and imaginary parts, which the state has as a last axis.

    Of a sparse gradient with indices along the first axis, as embeddings with `sparse=True` have, only those rows of the
    parameter and its state are updated where that gives the bits of the dense update (SGD without momentum, Adagrad, both
    without weight decay) or a group asks for it (`lazy` of Adam). Other sparse gradients are made dense.
    """

    # Whether every tensor of the state has the shape of its parameter; checked when it is loaded.
    state_has_shape_of_parameter = True
    # Whether every number of a parameter is updated by itself, so that complex ones may be taken
    # for pairs.
    takes_complex = True
    # Whether an update of a part of a parameter needs the rest of it, as norms of layers do.
    needs_whole_parameters = False
    # Whether it is made of operators that take sharded tensors (tenon.distributed).
    takes_sharded_tensors = True
    # Whether update() is written with the operators of `lists`, so that it may be called with TensorLists: holds for the
    # class that says so, and not for one that derives from it and has an update() of its own.
    takes_lists = False
    # Whether small parameters are updated by such calls: `foreach` of the constructor.
    updates_together = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "update" in vars(cls) and "takes_lists" not in vars(cls):
            cls.takes_lists = False
        if "__init__" in vars(cls) and cls.__module__.startswith("tenon.optim"):
            cls.__init__ = _checks_hints(cls.__init__)  # type: ignore[method-assign]

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self.defaults = {"maximize": False, "multi_precision": False, **defaults}
        self.param_groups: list[dict[str, Any]] = []
        self.state: dict[Tensor, dict[str, Any]] = {}
        self._last_step: ConditionalStep | None = None
        self._schedules = SharedRates()
        groups = list(params)
        if not groups:
            raise ValueError(f"{type(self).__name__}: got no parameters; is the model empty?")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, group: dict[str, Any]) -> None:
        params = group["params"]
        params = [params] if isinstance(params, Tensor) else list(params)
        known = {id(p) for other in self.param_groups for p in other["params"]}
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(
                    f"{type(self).__name__}: expected tensors, got {type(param).__name__}"
                )
            if id(param) in known:
                raise ValueError(
                    f"{type(self).__name__}: a parameter of shape {tuple(param.shape)} "
                    "appears twice; each may be in one group only"
                )
            if getattr(param, "is_part", False) and self.needs_whole_parameters:
                raise NotImplementedError(
                    f"{type(self).__name__}: expected an optimizer that updates every number of a "
                    "parameter by itself, such as AdamW, because parameters are spread over ranks; "
                    f"{type(self).__name__} needs whole parameters"
                )
            if param.layout == "sharded" and not self.takes_sharded_tensors:
                raise NotImplementedError(
                    f"{type(self).__name__}: expected plain parameters, got one of shape {tuple(param.shape)} of layout "
                    "sharded; AdamW, Lamb and most others take those"
                )
            if param.dtype.is_complex and not self.takes_complex:
                raise TypeError(
                    f"{type(self).__name__}: expected real parameters, as it acts on the rows "
                    "and columns of "
                    f"matrices, got {param.dtype.name}; train complex ones with another "
                    "optimizer, such as "
                    "AdamW"
                )
            known.add(id(param))
        unknown = set(group) - set(self.defaults) - {"params", "initial_lr"}
        if unknown:
            raise TypeError(
                f"{type(self).__name__}: unknown options {sorted(unknown)}; known are "
                f"{sorted(self.defaults)}"
            )
        group = {**self.defaults, **group, "params": params}
        self.check_options(group)
        self.param_groups.append(group)

    def check_options(self, group: dict[str, Any]) -> None:
        """Refuse options that cannot be meant."""
        for name in ("lr", "weight_decay", "eps"):
            if name in group and not group[name] >= 0.0:
                raise ValueError(f"{type(self).__name__}: expected {name} >= 0, got {group[name]}")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or set them to zero, so that the next backward starts afresh."""
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none or param.grad is None:
                    param.grad = None
                elif param.grad.layout != "strided":
                    param.grad = tenon.zeros_like(param.grad)
                else:
                    param.grad.zero_()

    @property
    def multi_precision(self) -> bool:
        """Whether all groups keep master weights. May be set, also between steps."""
        return all(group["multi_precision"] for group in self.param_groups)

    @multi_precision.setter
    def multi_precision(self, on: bool) -> None:
        self.defaults["multi_precision"] = on
        for group in self.param_groups:
            group["multi_precision"] = on
            self.check_options(group)

    def step(
        self, closure: Callable[[], Any] | None = None, *, found_inf: Tensor | None = None
    ) -> Any:
        """Update every parameter that has a gradient.

        A `closure` is called first, with recording on: it computes the gradients and returns the
        loss, which is the result of step(). If `found_inf`, a tensor of one number, is not 0, nothing
        changes; on devices that run behind the host, this does not wait for it.
        """
        loss = None
        if closure is not None:
            with tenon.enable_grad():
                loss = closure()
        self._settle()
        with tenon.no_grad():
            if found_inf is not None:
                if not runs_behind_host(found_inf.device):
                    if found_inf.item():
                        return loss
                    found_inf = None
                else:
                    self._last_step = ConditionalStep(found_inf)
            for group in self.param_groups:
                for param in self._update_together(group):
                    if param.grad is not None:
                        self._update_one(param, param.grad, group)
        return loss

    def _update_one(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        by_rows = is_rows(grad) and self.updates_rows(group)
        if grad.layout not in ("strided", "sharded"):
            grad = grad.coalesce() if by_rows else grad.to_dense()
        if group["maximize"]:
            grad = -grad
        target = parts(param)
        grad = grad if by_rows else parts(grad)
        if group["multi_precision"] and is_low_precision(param):
            grad = grad.to(tenon.float32)
            target = master_weight(param, self.state.setdefault(param, {}))
        state = self.state.get(param)
        if state is None:
            state = self.state[param] = self.new_state(target, group)
        elif len(state) == 1 and "master" in state:
            state.update(self.new_state(target, group))
        if self._last_step is not None:
            self._last_step.keep(param, state)
        if by_rows:
            self._update_rows(param, target, grad, state, group)
        else:
            self.update(target, grad, state, group)
            if target.dtype != param.dtype and not param.dtype.is_complex:
                tenon.cast(target, param.dtype, out=param)
        if self._last_step is not None:
            self._last_step.undo_if_bad(param)

    def _update_together(self, group: dict[str, Any]) -> list[Tensor]:
        """Update the small parameters of a group by calls for lists of them, with the bits of single updates. Returns the
        others."""
        together = self.takes_lists and self.updates_together and not group["multi_precision"]
        if not together or self._last_step is not None or len(group["params"]) < 2:
            return group["params"]
        params, grads, sizes, rest = _core.small_gradients(group["params"], lists.MOST_ELEMENTS)
        states = []
        for param in params:
            state = self.state.get(param)
            if state is None:
                state = self.state[param] = self.new_state(param, group)
            states.append(state)
        for part in lists.divided(sizes):
            one = lists.joined(states[part]) if params else None
            if one is None:
                rest.extend(params[part])
                continue
            before = dict(one)
            grad = TensorList(grads[part])
            if group["maximize"]:
                grad = -grad
            self.update(TensorList(params[part]), grad, one, group)
            lists.part_back(one, before, states[part])
        return rest

    def updates_rows(self, group: dict[str, Any]) -> bool:
        """Whether rows without a gradient may be left alone: a gradient of zero would move neither them nor their state,
        or the group asks for it."""
        return bool(group.get("lazy"))

    def _update_rows(
        self,
        param: Tensor,
        target: Tensor,
        grad: Tensor,
        state: dict[str, Any],
        group: dict[str, Any],
    ) -> None:
        rows = Rows(target, grad, state)
        if rows.param.shape[0] == 0 and not rows.state:
            return
        self.update(rows.param, parts(grad.values()), rows.state, group)
        rows.write_back()
        if target is not param and not param.dtype.is_complex:
            rows.write(param, rows.param)

    def _settle(self) -> None:
        """Roll back what the host counted in a conditional step that did not happen."""
        if self._last_step is not None:
            self._last_step.settle()
            self._last_step = None

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """State of a parameter before its first update."""
        return {}

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One update in place. Runs with recording off. Of a class that `takes_lists`, the arguments may be TensorLists,
        and tensors of the state, too."""
        raise NotImplementedError(f"{type(self).__name__} must define update()")

    # -- saving ------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Options and state, with parameters replaced by their indices; no parameter data."""
        self._settle()
        index = {id(param): i for i, param in enumerate(self._all())}
        return {
            "state": {index[id(param)]: dict(state) for param, state in self.state.items()},
            "param_groups": [
                {**group, "params": [index[id(p)] for p in group["params"]]}
                for group in self.param_groups
            ],
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from `saved`; state goes to the devices of the parameters."""
        self._last_step = None
        sizes = [len(group["params"]) for group in self.param_groups]
        got = [len(group["params"]) for group in saved["param_groups"]]
        if sizes != got:
            raise ValueError(
                f"{type(self).__name__}.load_state_dict: expected groups of {sizes} "
                f"parameters, got {got}; was it saved for another model?"
            )
        params = dict(zip((i for g in saved["param_groups"] for i in g["params"]), self._all()))
        state: dict[Tensor, dict[str, Any]] = {}
        for index, entries in saved["state"].items():
            param = params.get(index)
            if param is None:
                raise ValueError(
                    f"{type(self).__name__}.load_state_dict: state for parameter {index}, "
                    f"but there are {len(params)}"
                )
            for name, value in entries.items():
                is_number = name == "step" or not isinstance(value, Tensor)
                if is_number or not self.state_has_shape_of_parameter:
                    continue
                if tuple(value.shape) != tuple(parts(param).shape):
                    raise ValueError(
                        f"{type(self).__name__}.load_state_dict: {name} of parameter "
                        f"{index}: expected shape {tuple(parts(param).shape)}, got "
                        f"{tuple(value.shape)}"
                    )
            state[param] = {
                name: value.to(param.device).clone() if isinstance(value, Tensor) else value
                for name, value in entries.items()
            }
        self.state = state
        for group, other in zip(self.param_groups, saved["param_groups"]):
            group.update({**other, "params": group["params"]})

    def _all(self) -> list[Tensor]:
        return [param for group in self.param_groups for param in group["params"]]

    def check_betas(self, group: dict[str, Any]) -> None:
        if not all(0.0 <= beta < 1.0 for beta in group["betas"]):
            raise ValueError(
                f"{type(self).__name__}: expected betas in [0, 1), got {group['betas']}"
            )

    def __repr__(self) -> str:
        lines = [
            ", ".join(
                f"{k}={v}"
                for k, v in group.items()
                if k != "params" and (k, v) not in (("maximize", False), ("multi_precision", False))
            )
            + f" ({len(group['params'])} parameters)"
            for group in self.param_groups
        ]
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"


def with_decay(param: Any, grad: Any, weight_decay: float) -> Any:
    """The gradient with that of `weight_decay / 2 * sum(param ** 2)` added."""
    return grad + weight_decay * param if weight_decay else grad
