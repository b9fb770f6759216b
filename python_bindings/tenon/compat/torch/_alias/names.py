# SPDX-License-Identifier: Apache-2.0
"""Names of torch itself that are no functions of tensors."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat import torch as _torch
from tenon.compat.torch import _options

from . import memory
from .absent import absent_class
from .constructors import dtype_of
from .devices import AbsentDeviceError
from .devices import device as device
from .files import STORAGES
from .files import load as load
from .files import save as save
from .generators import default_generator as default_generator
from .modules import VERSION
from .precision import GradScaler as GradScaler
from .precision import autocast as autocast
from .programs import compile as compile

__all__ = (
    """__version__ _assert channels_last channels_last_3d strided set_num_interop_threads get_autocast_dtype
TypedStorage UntypedStorage OutOfMemoryError cdouble
cfloat clamp_max clamp_min detach is_signed set_flush_denormal are_deterministic_algorithms_enabled autocast compile device get_default_device get_float32_matmul_precision
clamp_max_ clamp_min_ default_generator detach_ get_device_module get_num_interop_threads is_conj is_deterministic_algorithms_warn_only_enabled
is_distributed is_inference is_neg is_same_size is_warn_always_enabled resize_as_ set_warn_always zero_
GradScaler cholesky clear_autocast_cache get_autocast_cpu_dtype get_autocast_gpu_dtype
is_autocast_cpu_enabled qr set_deterministic_debug_mode get_deterministic_debug_mode Event Storage Stream SymBool SymFloat
SymInt AcceleratorError legacy_contiguous_format
is_autocast_enabled is_inference_mode_enabled is_storage load save set_default_device set_default_dtype set_default_tensor_type
set_float32_matmul_precision typename use_deterministic_algorithms""".split()
    + sorted(STORAGES)
)

globals().update(STORAGES)
__version__ = VERSION
channels_last = _options.memory_format("channels_last")
channels_last_3d = _options.memory_format("channels_last_3d")
strided = _options.strided
legacy_contiguous_format = _options.memory_format("legacy_contiguous_format")


class Version:
    """torch.version."""

    __version__ = VERSION
    cuda = hip = xpu = None
    debug = False
    git_version = "Tenon"


class Types:
    """torch.types."""

    Device = Number = object
    Tensor = Tensor
    _dtype, _device, _size, _int, _float, _bool = tenon.dtype, tenon.device, tuple, int, float, bool


def is_storage(obj: Any) -> bool:
    """Whether `obj` is memory without a shape, which no object here is."""
    return False


def typename(obj: Any) -> str:
    """The name of an object's class, of a tensor as "torch.FloatTensor"."""
    if isinstance(obj, Tensor):
        return obj.type()
    return f"{type(obj).__module__}.{type(obj).__qualname__}"


def _assert(condition: Any, message: str) -> None:
    assert condition, message


# -- settings ----------------------------------------------------------------------------------------

_PRECISIONS = ("highest", "high", "medium")
_settings = {"precision": "highest", "deterministic": False, "warns": False, "always": False}


def set_float32_matmul_precision(precision: str) -> None:
    """How low the precision of products may be. Those of Tenon have the highest, whatever is allowed."""
    if precision not in _PRECISIONS:
        raise RuntimeError(
            f"set_float32_matmul_precision(): expected one of {', '.join(_PRECISIONS)}, got {precision!r}"
        )
    _settings["precision"] = precision


def get_float32_matmul_precision() -> Any:
    return _settings["precision"]


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Algorithms that give the same bits in every run. With `warn_only` they are still used."""
    tenon.use_deterministic_algorithms(mode)
    _settings["deterministic"] = bool(mode)
    _settings["warns"] = bool(mode and warn_only)


def are_deterministic_algorithms_enabled() -> Any:
    return _settings["deterministic"]


def is_deterministic_algorithms_warn_only_enabled() -> Any:
    """Whether use_deterministic_algorithms() was called with `warn_only`."""
    return _settings["warns"]


def set_warn_always(b: bool) -> None:
    """Whether warnings that come once come always. Those of Tenon are Python's, whose filters say so."""
    _settings["always"] = bool(b)


def is_warn_always_enabled() -> Any:
    """What set_warn_always() was told."""
    return _settings["always"]


def get_num_interop_threads() -> int:
    """Operators do not run beside each other."""
    return 1


def get_device_module(device: Any = None) -> Any:
    """The module of a kind of devices, as torch.cpu."""
    kind = tenon.get_device() if device is None else str(device).partition(":")[0]
    kind = str(kind).partition(":")[0]
    try:
        return import_module(f"torch.{kind}")
    except ImportError:
        raise RuntimeError(
            f"get_device_module(): expected a kind of devices that has a module, such as cpu, got {kind!r}"
        ) from None


def get_default_device() -> Any:
    return tenon.get_device()


def set_default_device(device: Any) -> None:
    """Where tensors are made if no device is named."""
    tenon.set_device(device)


def set_default_dtype(d: Any) -> None:
    """The dtype of floats that none is given for. Warns where PyTorch would use it for more than that."""
    tenon.set_default_dtype(d)
    if tenon.get_default_dtype() != tenon.float32:
        warnings.warn(
            f"set_default_dtype({d}): floats without a dtype are of it, but what is computed of whole numbers, as "
            f"torch.arange(3) * 0.5, is float32 here and {d} in PyTorch; give such numbers a dtype: "
            f"torch.arange(3, dtype={d})",
            stacklevel=2,
        )


def set_default_tensor_type(t: Any) -> None:
    """The default dtype, by its class or the name of that."""
    set_default_dtype(dtype_of(t))


def set_num_interop_threads(number: int) -> None:
    """Operators do not run beside each other."""


def is_inference_mode_enabled() -> bool:
    """Tensors of inference mode are as any others, so that nothing needs to know of it."""
    return False


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """Whether products are computed in lower precision here."""
    return device_type == "cpu" and tenon.amp.is_autocast_enabled()


def get_autocast_dtype(device_type: str = "cpu") -> Any:
    """In which dtype autocast computes products."""
    return tenon.amp.get_autocast_dtype() or tenon.bfloat16


def is_autocast_cpu_enabled() -> bool:
    """is_autocast_enabled("cpu")."""
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> Any:
    """get_autocast_dtype("cpu")."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> Any:
    """PyTorch's default: there is no GPU."""
    return tenon.float16


def clear_autocast_cache() -> None:
    """Parameters are cast where they are used, and their copies are kept by nothing."""


_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: Any) -> None:
    """use_deterministic_algorithms() by a name or number: "default", "warn" or "error", or 0 to 2."""
    mode = _MODES.index(debug_mode) if debug_mode in _MODES else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError(
            f"set_deterministic_debug_mode(): expected 0 to 2 or one of {', '.join(_MODES)}, got {debug_mode!r}"
        )
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    if not _settings["deterministic"]:
        return 0
    return 1 if _settings["warns"] else 2


def cholesky(input: Tensor, upper: bool = False, *, out: Any = None) -> Tensor:
    """torch.linalg.cholesky() by its older name."""
    return _torch.linalg.cholesky(input, upper=upper, out=out)  # type: ignore[attr-defined]


def qr(input: Tensor, some: bool = True, *, out: Any = None) -> Any:
    """torch.linalg.qr() by its older name."""
    return _torch.linalg.qr(input, mode="reduced" if some else "complete", out=out)  # type: ignore[call-arg]


def detach(input: Tensor) -> Tensor:
    """The tensor without its history."""
    return input.detach()


def clamp_min(input: Tensor, min: Any) -> Tensor:
    """clamp() from below."""
    return tenon.clip(input, min, None)


def clamp_max(input: Tensor, max: Any) -> Tensor:
    """clamp() from above."""
    return tenon.clip(input, None, max)


def clamp_min_(input: Tensor, min: Any) -> Tensor:
    """clamp_min(), written into the tensor."""
    return input.copy_(clamp_min(input, min))


def clamp_max_(input: Tensor, max: Any) -> Tensor:
    """clamp_max(), written into the tensor."""
    return input.copy_(clamp_max(input, max))


def zero_(input: Tensor) -> Tensor:
    """Zeros, written into the tensor."""
    return input.zero_()


def detach_(input: Tensor) -> Tensor:
    """The tensor itself, which must have no history."""
    return input.detach_()


def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor itself with the shape of another one."""
    return memory.resize_as_(input, the_template, memory_format=memory_format)


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape."""
    return input.shape == other.shape


def _never(input: Tensor) -> bool:
    if not isinstance(input, Tensor):
        raise TypeError(f"expected a Tensor, got {type(input).__name__}")
    return False


# Conjugates and negatives have memory of their own, and no tensor is of inference alone, or on several machines.
is_conj = is_neg = is_inference = is_distributed = _never


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has a sign."""
    return input.dtype.is_signed


def set_flush_denormal(mode: bool) -> bool:
    """Whether denormal numbers could be flushed to zero: they are not."""
    return False


Storage, TypedStorage, UntypedStorage = map(
    absent_class, ("torch.Storage", "torch.TypedStorage", "torch.UntypedStorage")
)
Event, Stream, SymBool, SymFloat, SymInt = map(
    absent_class, ("torch.Event", "torch.Stream", "torch.SymBool", "torch.SymFloat", "torch.SymInt")
)
OutOfMemoryError = tenon.OutOfMemoryError
AcceleratorError = AbsentDeviceError
cfloat, cdouble = tenon.complex64, tenon.complex128
