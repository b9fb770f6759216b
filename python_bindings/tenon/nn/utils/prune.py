# SPDX-License-Identifier: Apache-2.0
"""Pruning: elements of a parameter are held at 0 by a mask, while the rest goes on training.

A pruned parameter `weight` stays as `weight_orig`, which the optimizer trains, beside the buffer `weight_mask`. Before
each call of the module the attribute `weight` becomes their product. `remove()` makes it a parameter again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tenon
from tenon import Tensor

from ..module import Module
from ..parameter import Buffer, Parameter

Amount = int | float


class BasePruningMethod:
    """What chooses the elements: subclasses define compute_mask() and PRUNING_TYPE, which says what of a parameter that
    is pruned already they choose from: all its elements ('global'), those that are left ('unstructured'), or its
    slices in which some are left ('structured')."""

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for `t`, where it was `default_mask`."""
        raise NotImplementedError(f"{type(self).__name__} must define compute_mask()")

    def __call__(self, module: Module, inputs: Any) -> None:
        object.__setattr__(module, self._tensor_name, self.apply_mask(module))

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter of `module` without the elements that are pruned."""
        original = getattr(module, f"{self._tensor_name}_orig")
        return original * getattr(module, f"{self._tensor_name}_mask").to(original.dtype)

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prune the parameter `name`, further if it is pruned already; `importance_scores`, of its shape, say which
        elements go first in place of its own."""
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        before = _method_of(module, name)
        original = getattr(module, name if before is None else f"{name}_orig", None)
        if not isinstance(original, Parameter):
            raise AttributeError(
                f"prune: expected a parameter {name!r} of {type(module).__name__}, got {type(original).__name__}"
            )
        scores = original if importance_scores is None else importance_scores
        if tuple(scores.shape) != tuple(original.shape):
            raise ValueError(
                f"prune: expected importance_scores of shape {tuple(original.shape)}, got {tuple(scores.shape)}"
            )
        with tenon.no_grad():
            if before is None:
                mask = method.compute_mask(scores.detach(), tenon.ones_like(original.detach()))
            else:
                container = before if isinstance(before, PruningContainer) else None
                if container is None:
                    container = PruningContainer(before)
                container.add_pruning_method(method)
                mask = getattr(module, f"{name}_mask")
                mask = container.compute_mask(scores.detach(), mask.to(original.dtype))
                method = container
        if before is None:
            delattr(module, name)
            setattr(module, f"{name}_orig", original)
        setattr(module, f"{name}_mask", Buffer(mask))
        _set_method(module, name, method)
        method(module, None)
        return method

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """`t` without the elements that the method chooses."""
        scores = t if importance_scores is None else importance_scores
        mask = tenon.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, mask).to(t.dtype)

    def remove(self, module: Module) -> None:
        """The pruned parameter becomes a parameter again: `module` forgets the mask."""
        name = self._tensor_name
        value = self.apply_mask(module)
        original = getattr(module, f"{name}_orig")
        with tenon.no_grad():
            original.data = value.detach()
        for each in (name, f"{name}_orig", f"{name}_mask"):
            delattr(module, each)
        setattr(module, name, original)
        _set_method(module, name, None)


class PruningContainer(BasePruningMethod):
    """Several methods for one parameter, one after another."""

    def __init__(self, *methods: BasePruningMethod) -> None:
        self._methods: tuple[BasePruningMethod, ...] = ()
        for each in methods:
            self.add_pruning_method(each)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """One more method, of the same parameter as the others."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"prune: expected a pruning method, got {type(method).__name__}")
        name = getattr(method, "_tensor_name", None)
        if self._methods and name != self._tensor_name:
            raise ValueError(
                f"prune: expected a method for the parameter {self._tensor_name!r}, got one for {name!r}"
            )
        self._methods += (method,)
        if name is not None:
            self._tensor_name = name

    def __len__(self) -> int:
        return len(self._methods)

    def __iter__(self) -> Any:
        return iter(self._methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of the last method, on what the others left."""
        method, mask = self._methods[-1], default_mask
        if method.PRUNING_TYPE == "unstructured":
            left = tenon.nonzero(mask.reshape([-1]) != 0).reshape([-1])
            flat = mask.reshape([-1]).clone()
            part = tenon.index_select(t.reshape([-1]), left, 0)
            kept = method.compute_mask(part, tenon.ones_like(part))
            return tenon.index_put(flat, [left], kept.to(mask.dtype)).reshape(list(mask.shape))
        if method.PRUNING_TYPE == "structured":
            axis = method.dim % t.ndim  # type: ignore[attr-defined]
            others = [each for each in range(t.ndim) if each != axis]
            left = tenon.nonzero(tenon.sum(mask, others) != 0).reshape([-1])
            part = tenon.index_select(t, left, axis)
            kept = method.compute_mask(part, tenon.index_select(mask, left, axis))
            return tenon.index_copy(mask, axis, left, kept.to(mask.dtype))
        if method.PRUNING_TYPE != "global":
            raise ValueError(
                f"prune: expected PRUNING_TYPE 'global', 'unstructured' or 'structured', got {method.PRUNING_TYPE!r}"
            )
        return mask * method.compute_mask(t, mask).to(mask.dtype)


class Identity(BasePruningMethod):
    """Prunes nothing: a parameter with a mask of ones."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _ByCount(BasePruningMethod):
    """Prunes `amount` elements: a count, or a share from 0 to 1."""

    def __init__(self, amount: Amount) -> None:
        self.amount = _checked_amount(amount)

    def _scores(self, t: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count_of(self.amount, t.numel())
        if count == 0:
            return default_mask
        order = tenon.argsort(self._scores(t.reshape([-1])), 0)
        flat = default_mask.reshape([-1]).clone()
        flat = tenon.index_fill(flat, 0, order[:count], 0)
        return flat.reshape(list(default_mask.shape))


class RandomUnstructured(_ByCount):
    """Prunes elements at random."""

    def _scores(self, t: Tensor) -> Tensor:
        return tenon.uniform(t.shape, device=t.device)


class L1Unstructured(_ByCount):
    """Prunes the elements of smallest magnitude."""

    def _scores(self, t: Tensor) -> Tensor:
        return tenon.abs(t)


class _Structured(BasePruningMethod):
    """Prunes `amount` slices along `dim`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Amount, dim: int = -1) -> None:
        self.amount, self.dim = _checked_amount(amount), dim

    def _scores(self, t: Tensor, others: list[int]) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.ndim < 2:
            raise ValueError(
                f"prune: expected a parameter of two axes or more to prune slices of, got shape {tuple(t.shape)}"
            )
        axis = self.dim % t.ndim
        count = _count_of(self.amount, t.shape[axis])
        if count == 0:
            return default_mask
        others = [each for each in range(t.ndim) if each != axis]
        order = tenon.argsort(self._scores(t, others), 0)
        return tenon.index_fill(default_mask, axis, order[:count], 0)


class RandomStructured(_Structured):
    """Prunes slices along `dim` at random."""

    def _scores(self, t: Tensor, others: list[int]) -> Tensor:
        axis = next(each for each in range(t.ndim) if each not in others)
        return tenon.uniform([t.shape[axis]], device=t.device)


class LnStructured(_Structured):
    """Prunes the slices along `dim` of the smallest norm of order `n`."""

    def __init__(self, amount: Amount, n: float, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = float(n)

    def _scores(self, t: Tensor, others: list[int]) -> Tensor:
        return tenon.norm(t, self.n, others)


class CustomFromMask(BasePruningMethod):
    """Prunes what a mask leaves out."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if tuple(self.mask.shape) != tuple(t.shape):
            raise ValueError(
                f"prune: expected a mask of shape {tuple(t.shape)}, got {tuple(self.mask.shape)}"
            )
        return default_mask * self.mask.to(default_mask.device).to(default_mask.dtype)


# -- functions -------------------------------------------------------------------------------------


def identity(module: Module, name: str) -> Module:
    """A mask of ones for the parameter `name`."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Amount) -> Module:
    """Prune `amount` elements, a count or a share, at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: Amount, importance_scores: Tensor | None = None
) -> Module:
    """Prune the `amount` elements of smallest magnitude, or of the smallest scores."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Amount, dim: int) -> Module:
    """Prune `amount` slices along `dim` at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: Amount,
    n: float,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prune the `amount` slices along `dim` of the smallest norm of order `n`."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune what `mask` leaves out."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune elements of several parameters, pairs of a module and a name, as if they were one."""
    pairs = list(parameters)
    if not pairs:
        raise ValueError("global_unstructured: expected parameters, got none")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f"global_unstructured: expected an unstructured method, got {pruning_method.__name__}"
        )
    scores, masks = [], []
    for module, name in pairs:
        pruned = _method_of(module, name) is not None
        original = getattr(module, f"{name}_orig" if pruned else name)
        own = (importance_scores or {}).get((module, name))
        scores.append((original if own is None else own).detach().reshape([-1]))
        mask = getattr(module, f"{name}_mask") if pruned else tenon.ones_like(original.detach())
        masks.append(mask.reshape([-1]).to(scores[-1].dtype))
    container = PruningContainer()
    method._tensor_name = "parameters"
    container.add_pruning_method(method)
    with tenon.no_grad():
        whole = container.compute_mask(tenon.concat(scores), tenon.concat(masks))
    start = 0
    for (module, name), part in zip(pairs, masks, strict=True):
        pruned = _method_of(module, name) is not None
        shape = list(getattr(module, f"{name}_orig" if pruned else name).shape)
        custom_from_mask(module, name, whole[start : start + part.numel()].reshape(shape))
        start += part.numel()


def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter one of its own again, whose pruned elements are 0."""
    method = _method_of(module, name)
    if method is None:
        raise ValueError(
            f"remove: expected a pruned parameter {name!r} of {type(module).__name__}, got none"
        )
    method.remove(module)
    return module


def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module, or of one below it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for each in module.modules()
        for hook in (each._forward_pre_hooks or {}).values()
    )


def _method_of(module: Module, name: str) -> BasePruningMethod | None:
    for hook in (module._forward_pre_hooks or {}).values():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return hook
    return None


def _set_method(module: Module, name: str, method: BasePruningMethod | None) -> None:
    """The hook for the parameter; none if there is no method."""
    hooks = module._forward_pre_hooks or {}
    for key, hook in list(hooks.items()):
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            if method is not None:
                hooks[key] = method
                return
            del hooks[key]
            if not hooks:
                module._forward_pre_hooks = None
            module._has_hooks = any(
                getattr(module, kind) is not None
                for kind in (
                    "_forward_hooks",
                    "_forward_pre_hooks",
                    "_backward_hooks",
                    "_backward_pre_hooks",
                )
            )
            return
    if method is not None:
        module.register_forward_pre_hook(method)  # type: ignore[arg-type]


def _checked_amount(amount: Amount) -> Amount:
    if isinstance(amount, bool) or not isinstance(amount, (int, float)) or amount < 0:
        raise ValueError(f"prune: expected a count or a share from 0 to 1, got {amount!r}")
    if isinstance(amount, float) and amount > 1:
        raise ValueError(f"prune: expected a share from 0 to 1, got {amount}")
    return amount


def _count_of(amount: Amount, elements: int) -> int:
    if isinstance(amount, float):
        return round(amount * elements)
    if amount > elements:
        raise ValueError(
            f"prune: expected at most {elements} elements or slices to prune, got {amount}"
        )
    return amount
