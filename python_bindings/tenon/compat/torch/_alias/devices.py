# SPDX-License-Identifier: Apache-2.0
"""torch.cuda and its neighbours, which say that there is none, and torch.backends, whose switches choose among libraries
that Tenon does not use."""

from __future__ import annotations

from typing import Any, NoReturn

import tenon

from .absent import absent_class, absent_function

__all__ = [
    "AbsentDevice",
    "AbsentDeviceError",
    "Accelerator",
    "Cpu",
    "Cuda",
    "CudaBackend",
    "Cudnn",
    "device",
]


def _no(*_: Any, **__: Any) -> bool:
    return False


def _zero(*_: Any, **__: Any) -> int:
    return 0


def _nothing(*_: Any, **__: Any) -> None:
    """What there is nothing to do for without such a device."""


class AbsentDeviceError(RuntimeError):
    """What programs expect of devices that fail."""


def _refused(name: str) -> Any:
    def function(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(
            f"{name}(): there is no CUDA under the alias, as torch.cuda.is_available() says; Tenon's own devices are "
            f'reached by x.to("name"), and tenon.devices() lists them'
        )

    return function


class AbsentDevice:
    """A device that is named and not there: a program may name it, and moving a tensor to it is an error."""

    def __init__(self, type: str, index: int | None) -> None:
        self.type, self.index = type, index

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsentDevice) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


_KINDS = "cuda hpu mps mtia npu xla xpu".split()


class _DeviceClass(type):
    def __call__(cls, type: Any, index: int | None = None) -> Any:
        if isinstance(type, (tenon.device, AbsentDevice)):
            return type
        kind, _, number = str(f"cuda:{type}" if isinstance(type, int) else type).partition(":")
        if kind in _KINDS:
            return AbsentDevice(kind, int(number) if number else index)
        return tenon.device(type, index)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (tenon.device, AbsentDevice))


class device(metaclass=_DeviceClass):
    """torch.device: one of Tenon's, or the name of a device that is not there."""


class AbsentAccelerator:
    """torch.mps and torch.xpu."""

    is_available = is_initialized = _no
    device_count = _zero
    manual_seed = manual_seed_all = empty_cache = _nothing


class AbsentBackend:
    """torch.backends of libraries that are not used."""

    is_available = is_built = _no
    enabled = False


class Accelerator:
    """torch.accelerator."""

    is_available = _no
    device_count = _zero
    current_accelerator = _nothing
    synchronize = _refused("torch.accelerator.synchronize")
    set_device_index = _refused("torch.accelerator.set_device_index")
    current_device_index = _refused("torch.accelerator.current_device_index")
    current_device_idx, set_device_idx = current_device_index, set_device_index
    current_stream = _refused("torch.accelerator.current_stream")
    set_stream = _refused("torch.accelerator.set_stream")
    get_memory_info = _refused("torch.accelerator.get_memory_info")
    memory_allocated = max_memory_allocated = memory_reserved = max_memory_reserved = _zero
    empty_cache = reset_peak_memory_stats = reset_accumulated_memory_stats = _nothing


class Cpu:
    """torch.cpu."""

    @staticmethod
    def is_available() -> bool:
        return True

    @staticmethod
    def device_count() -> int:
        return 1

    @staticmethod
    def synchronize(device: Any = None) -> None:
        tenon.synchronize()


class Cuda:
    """torch.cuda: questions are answered by no and 0, what needs a device is an error."""

    is_available = is_initialized = is_bf16_supported = is_current_stream_capturing = _no
    device_count = memory_allocated = max_memory_allocated = memory_reserved = (
        max_memory_reserved
    ) = _zero
    manual_seed = manual_seed_all = seed = seed_all = empty_cache = ipc_collect = _nothing
    reset_peak_memory_stats = reset_max_memory_allocated = reset_max_memory_cached = _nothing
    reset_accumulated_memory_stats = set_per_process_memory_fraction = _nothing
    is_tf32_supported = can_device_access_peer = _no
    memory_cached = max_memory_cached = _zero
    default_generators: tuple[Any, ...] = ()
    OutOfMemoryError = tenon.OutOfMemoryError
    AcceleratorError = CudaError = DeferredCudaCallError = AbsentDeviceError

    @staticmethod
    def get_rng_state_all() -> list[Any]:
        return []

    get_arch_list = get_rng_state_all

    set_rng_state_all = _nothing
    Stream, Event, CUDAGraph, StreamContext, device = map(
        absent_class,
        (
            "torch.cuda.Stream",
            "torch.cuda.Event",
            "torch.cuda.CUDAGraph",
            "torch.cuda.StreamContext",
            "torch.cuda.device",
        ),
    )
    graph = absent_function("torch.cuda.graph")
    nvtx = type("nvtx", (), {})


# Classes of tensors of CUDA, which programs choose where it is there.
for _name in """FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor IntTensor ShortTensor CharTensor ByteTensor
        BoolTensor ExternalStream MemPool device_of""".split():
    setattr(Cuda, _name, absent_class(f"torch.cuda.{_name}"))
for _name in "mark range range_end range_pop range_push range_start".split():
    setattr(Cuda.nvtx, _name, staticmethod(_refused(f"torch.cuda.nvtx.{_name}")))


for _name in """current_device current_stream default_stream get_device_capability get_device_name get_device_properties
        get_rng_state init initial_seed list_gpu_processes make_graphed_callables mem_get_info memory_snapshot memory_stats
        memory_summary memory_usage power_draw set_device set_rng_state set_stream set_sync_debug_mode stream synchronize
        temperature utilization""".split():
    setattr(Cuda, _name, staticmethod(_refused(f"torch.cuda.{_name}")))


class _Products:
    """Switches of products in lower precision, which there are none of."""

    allow_tf32 = allow_fp16_reduced_precision_reduction = allow_bf16_reduced_precision_reduction = (
        False
    )


class CudaBackend:
    """torch.backends.cuda."""

    is_built = flash_sdp_enabled = mem_efficient_sdp_enabled = cudnn_sdp_enabled = _no
    enable_flash_sdp = enable_mem_efficient_sdp = enable_math_sdp = enable_cudnn_sdp = _nothing
    matmul = _Products()

    @staticmethod
    def math_sdp_enabled() -> bool:
        return True


class Cudnn:
    """torch.backends.cudnn: of its switches a CPU knows no difference."""

    benchmark = deterministic = allow_tf32 = enabled = False
    is_available = _no

    @staticmethod
    def version() -> None:
        return None
