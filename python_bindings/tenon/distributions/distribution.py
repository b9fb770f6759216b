# SPDX-License-Identifier: Apache-2.0
"""Distribution: what all probability distributions have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import tenon
from tenon import Tensor
from tenon._tensor.generators import Generator, stream_of

from .constraints import Constraint

D = TypeVar("D", bound="Distribution")
Number = float | Tensor


def broadcast_all(*values: Number) -> list[Tensor]:
    """The values as tensors of one shape, one floating dtype and one device. Numbers take both from
    the tensors among them; whole numbers count as float32."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    dtypes = [tensor.dtype for tensor in tensors if tensor.dtype.is_floating_point]
    dtype = tenon.result_type(*dtypes) if dtypes else tenon.float32
    device = tensors[0].device if tensors else None
    converted = [
        value.to(dtype) if isinstance(value, Tensor) else tenon.tensor(value, dtype, device)
        for value in values
    ]
    return list(tenon.broadcast_tensors(converted))


def sum_rightmost(value: Tensor, count: int) -> Tensor:
    """The sum over the last `count` axes."""
    return value.sum(axis=list(range(-count, 0))) if count else value


class Distribution:
    """Independent random variables of shape `batch_shape`, each with values of shape `event_shape`.

    Subclasses name their parameters in `arg_constraints`, keep each in an attribute of that name
    and define `log_prob` and `_rsample` (or `_sample`, if no gradient passes through a sample).
    Parameters and the values given to log_prob() are checked unless `validate_args` is false.
    """

    arg_constraints: ClassVar[Mapping[str, Constraint]] = {}
    has_rsample: ClassVar[bool] = False
    has_enumerate_support: ClassVar[bool] = False
    _support: ClassVar[Constraint | None] = None  # where no parameter changes it
    _validates: ClassVar[bool] = True

    def __init__(
        self,
        batch_shape: Sequence[int] = (),
        event_shape: Sequence[int] = (),
        validate_args: bool | None = None,
    ) -> None:
        self.batch_shape, self.event_shape = tuple(batch_shape), tuple(event_shape)
        if validate_args is not None:
            self._validates = validate_args  # type: ignore[misc]
        if self._validates:
            for name, constraint in self.arg_constraints.items():
                value = vars(self).get(name)
                if value is not None:
                    self._check(f"parameter {name}", constraint, value)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check parameters and values where `validate_args` is None."""
        Distribution._validates = value

    # -- what subclasses define --------------------------------------------------------------------

    @property
    def support(self) -> Constraint:
        """The values that samples have."""
        return self._support or self._absent("support")

    @property
    def mean(self) -> Tensor:
        """The expected value, [*batch_shape, *event_shape]."""
        return self._absent("mean")

    @property
    def mode(self) -> Tensor:
        """The most probable value, [*batch_shape, *event_shape]."""
        return self._absent("mode")

    @property
    def variance(self) -> Tensor:
        """The variance of each element, [*batch_shape, *event_shape]."""
        return self._absent("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation of each element."""
        return tenon.sqrt(self.variance)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        """What rsample() draws."""
        return self._absent("rsample")

    def _sample(self, sample_shape: Sequence[int]) -> Tensor:
        """What sample() draws, where that is not what rsample() does."""
        return self.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of density or probability at `value`, without the axes of an event."""
        return self._absent("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a sample of at most `value`."""
        return self._absent("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The number below which a sample is with probability `value`."""
        return self._absent("icdf")

    def entropy(self) -> Tensor:
        """The entropy in nats, [*batch_shape]."""
        return self._absent("entropy")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values along a new first axis; without `expand`, batch axes have length 1."""
        return self._absent("enumerate_support")

    # -- what follows from that --------------------------------------------------------------------

    def rsample(
        self, sample_shape: Sequence[int] = (), *, generator: Generator | None = None
    ) -> Tensor:
        """Values [*sample_shape, *batch_shape, *event_shape] that are differentiable functions of
        the parameters; of `generator`, a tenon.random.Generator, where one is given."""
        with self._stream(generator, "rsample"):
            return self._rsample(sample_shape)

    def sample(
        self, sample_shape: Sequence[int] = (), *, generator: Generator | None = None
    ) -> Tensor:
        """Values [*sample_shape, *batch_shape, *event_shape], without a gradient; of `generator`, a
        tenon.random.Generator, where one is given."""
        with tenon.no_grad(), self._stream(generator, "sample"):
            return self._sample(sample_shape)

    def perplexity(self) -> Tensor:
        """exp(entropy)."""
        return tenon.exp(self.entropy())

    def expand(self: D, batch_shape: Sequence[int]) -> D:
        """The same distribution with parameters expanded to `batch_shape`."""
        parameters: dict[str, Any] = {}
        for name, constraint in self.arg_constraints.items():
            value = vars(self).get(name)
            if isinstance(value, Tensor):
                event = value.shape[value.ndim - constraint.event_dim :]
                value = tenon.expand(value, [*batch_shape, *event])
            parameters[name] = value
        return self._checked_alike(
            type(self)(**parameters, **self._settings(), validate_args=False)
        )

    def _checked_alike(self, other: D) -> D:
        """`other`, whose parameters need no check, with values checked as those of this one."""
        vars(other).pop("_validates", None)
        vars(other).update({k: v for k, v in vars(self).items() if k == "_validates"})
        return other

    def _settings(self) -> dict[str, Any]:
        """Arguments of the constructor that are no parameters."""
        return {}

    def _extended(self, sample_shape: Sequence[int]) -> list[int]:
        return [*sample_shape, *self.batch_shape, *self.event_shape]

    def _validate_sample(self, value: Tensor) -> None:
        """Raise ValueError where `value` is not of the shape of samples or not in the support."""
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{type(self).__name__}: expected a tensor as value, got {type(value).__name__}"
            )
        if not self._validates:
            return
        events = len(self.event_shape)
        if tuple(value.shape[value.ndim - events :]) != self.event_shape or value.ndim < events:
            raise ValueError(
                f"{type(self).__name__}: expected values whose last axes are {self.event_shape}, got "
                f"shape {tuple(value.shape)}"
            )
        self._check("value", self.support, value)

    def _check(self, what: str, constraint: Constraint, value: Tensor) -> None:
        inside = constraint.check(value)
        if bool(tenon.all(inside)):
            return
        axes = value.ndim - constraint.event_dim
        shape = list(value.shape[:axes])
        first = tenon.nonzero(~tenon.expand(inside, shape))[0].tolist()
        got = value.detach()
        for index in first:
            got = got[index]
        at = f" at index {first}" if first else ""
        raise ValueError(
            f"{type(self).__name__}: expected {what} to be {constraint.description}, got "
            f"{got.tolist()}{at}; validate_args=False leaves the check out"
        )

    def _any_tensor(self) -> Tensor | None:
        """A tensor on the device that samples are drawn on."""
        for value in vars(self).values():
            found = value._any_tensor() if isinstance(value, Distribution) else value
            if isinstance(found, Tensor):
                return found
        return None

    def _stream(self, generator: Generator | None, caller: str) -> Any:
        found = None if generator is None else self._any_tensor()
        device = tenon.tensor(0.0).device if found is None else found.device
        return stream_of(generator, device, f"{type(self).__name__}.{caller}()")

    def _absent(self, name: str) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} has no {name}: expected a distribution for which there is one"
            + ("; use sample(), which has no gradient" if name == "rsample" else "")
        )

    def __repr__(self) -> str:
        shown = []
        for name in self.arg_constraints:
            value = vars(self).get(name)
            if isinstance(value, Tensor):
                text = f"{value.item():g}" if value.numel() == 1 else f"shape {tuple(value.shape)}"
                shown.append(f"{name}: {text}")
        return f"{type(self).__name__}({', '.join(shown)})"
