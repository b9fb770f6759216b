# SPDX-License-Identifier: Apache-2.0
"""The modules that programs for PyTorch import, each put together from modules of Tenon.

A line has names of modules, which share what follows, and after the colon where their names are looked for, in this order:
modules below `tenon`, `.own` for one of this package, or a class in one. What none of them has is an AttributeError, or an
ImportError, that says so.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.metadata
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

__all__ = ["VERSION", "install", "is_installed"]

VERSION = "2.15.0"  # whose names, signatures and defaults are meant

_TABLE = """
torch: .names .constructors .shapes .symbols compat.torch
torch.accelerator: .devices.Accelerator
torch.amp torch.amp.autocast_mode torch.amp.grad_scaler torch.cuda.amp torch.cuda.amp.autocast_mode
    torch.cuda.amp.grad_scaler: .precision
torch.autograd torch.autograd.variable: .gradients autograd
torch.autograd.function torch.autograd.grad_mode torch.autograd.graph: autograd
torch.autograd.functional: func autograd
torch.autograd.profiler torch.profiler: .gradients.Profiler profiler
torch.backends: .nothing
torch.backends.cuda: .devices.CudaBackend
torch.backends.cudnn: .devices.Cudnn
torch.backends.mkldnn torch.backends.mps torch.backends.openmp torch.backends.mkl: .devices.AbsentBackend
torch.compiler: .programs.Compiler
torch.cpu: .devices.Cpu
torch.cuda: .devices.Cuda
torch.cuda.random: .devices.Cuda
torch.distributed torch.distributed.distributed_c10d: compat.torch.distributed
torch.distributed._composable torch.distributed.algorithms torch.distributed.algorithms.ddp_comm_hooks
    torch.distributed.elastic torch.distributed.elastic.multiprocessing: .nothing
torch.distributed.algorithms.ddp_comm_hooks.default_hooks: distributed.comm_hooks
torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook: distributed.power_sgd
torch.distributed.algorithms.join: .mentioned.Join
torch.distributed.checkpoint: compat.torch.distributed.checkpoint .mentioned.Checkpoint
torch.distributed.elastic.multiprocessing.errors: .ranks.Errors
torch.distributed.optim: compat.torch.distributed.optim
torch.distributed.tensor.parallel: compat.torch.distributed.tensor.parallel
torch.distributions torch.distributions.bernoulli torch.distributions.beta torch.distributions.binomial
    torch.distributions.categorical torch.distributions.dirichlet torch.distributions.exponential
    torch.distributions.gamma torch.distributions.independent torch.distributions.laplace
    torch.distributions.log_normal torch.distributions.mixture_same_family torch.distributions.one_hot_categorical
    torch.distributions.poisson torch.distributions.relaxed_bernoulli torch.distributions.relaxed_categorical
    torch.distributions.transformed_distribution torch.distributions.uniform
    torch.distributions.distribution torch.distributions.kl torch.distributions.multivariate_normal
    torch.distributions.normal torch.distributions.utils: distributions
torch.distributions.constraints: distributions.constraints
torch.distributions.transforms: distributions.transforms
torch.fft: compat.torch.fft
torch.func torch._functorch: func
torch.functional torch._functional: compat.torch
torch.hub: .programs.Hub
torch.jit: .programs.Jit
torch.linalg: compat.torch.linalg
torch.masked: compat.torch.masked
torch.mps torch.xpu torch.mtia: .devices.AbsentAccelerator
torch.multiprocessing: .processes multiprocessing
torch.nn torch.nn.modules torch.nn.modules.activation torch.nn.modules.batchnorm torch.nn.modules.container
    torch.nn.modules.conv torch.nn.modules.dropout torch.nn.modules.linear torch.nn.modules.loss torch.nn.modules.module
    torch.nn.modules.normalization torch.nn.modules.padding torch.nn.modules.pixelshuffle torch.nn.modules.pooling
    torch.nn.modules.rnn torch.nn.modules.sparse torch.nn.modules.transformer torch.nn.modules.upsampling
    torch.nn.modules.instancenorm torch.nn.parameter: .layers compat.torch.nn
torch.nn.functional: compat.torch.nn.functional
torch.nn.init: .layers.Init nn.init
torch.nn.modules.utils: .layers.Tuples
torch.nn.parallel torch.nn.parallel.distributed: .ranks.OfModules compat.torch.nn.parallel
torch.nn.utils torch.nn.utils.clip_grad torch.nn.utils.convert_parameters torch.nn.utils.stateless
    torch.nn.utils.fusion: .layers.Utils nn.utils
torch.nn.utils.parametrizations: nn.utils.parametrizations
torch.nn.utils.parametrize: nn.utils.parametrize
torch.nn.utils.rnn: nn.utils.rnn
torch.onnx: .programs.Onnx
torch.optim torch.optim.optimizer torch.optim.adam torch.optim.adamw torch.optim.sgd torch.optim.rmsprop
    torch.optim.adagrad: optim
torch.optim.lr_scheduler: optim.lr_scheduler
torch.optim.swa_utils: .averages optim.swa_utils
torch.random: .generators compat.torch random
torch.serialization: .files
torch._utils: .files.Rebuilding
torch.signal: compat.torch.signal
torch.signal.windows: compat.torch.signal.windows
torch.special: compat.torch.special
torch.testing: .testing
torch.types: .names.Types
torch.utils: .nothing
torch.utils.checkpoint: utils.checkpoint
torch.utils.data torch.utils.data.dataloader torch.utils.data.dataset torch.utils.data.distributed
    torch.utils.data.sampler torch.utils.data._utils torch.utils.data._utils.collate: .batches data
torch.utils.dlpack: utils.dlpack
torch.utils.hooks: .layers.Hooks
torch.utils.tensorboard torch.utils.tensorboard.writer: .curves
torch.version: .names.Version
torch._dynamo: .mentioned.Dynamo
torch._dynamo._trace_wrapped_higher_order_op: .mentioned.Wrapped
torch.backends.opt_einsum: .mentioned.OptEinsum
torch.distributed.device_mesh: compat.torch.distributed.device_mesh
torch.distributed.fsdp torch.distributed.fsdp.fully_sharded_data_parallel:
    compat.torch.distributed.fsdp .mentioned.FullySharded
torch.distributed._composable.fsdp: compat.torch.distributed.fsdp
torch.distributed._functional_collectives: .mentioned.Functional
torch.distributed.checkpoint.hf_storage: .mentioned.HuggingFace
torch.distributed.checkpoint.state_dict: .mentioned.States
torch.distributed.tensor: compat.torch.distributed.tensor
torch.distributed.tensor._utils: .mentioned.Offsets
torch.distributed.tensor.placement_types: compat.torch.distributed.tensor .mentioned.Placements
torch.export: .mentioned.Export
torch.fx: .mentioned.Fx
torch.jit.annotations: .programs.Annotations
torch.library: .mentioned.Library
torch.nested: compat.torch.nested
torch.nn.attention: .mentioned.Attention
torch.nn.attention.flex_attention: .mentioned.FlexAttention
torch.overrides: .mentioned.Overrides
torch.sparse: compat.torch.sparse .mentioned.Sparse
torch.utils._pytree: .mentioned.Pytree
torchvision.models.feature_extraction: .mentioned.Features
torchvision.io: .mentioned.Files
torchvision.ops.misc: .pictures.Layers vision.ops
torchvision: .pictures.Top vision
torchvision.datasets torchvision.datasets.mnist torchvision.datasets.folder: .pictures.Datasets vision.datasets
torchvision.models: vision.models
torchvision.models.detection: vision.models.detection
torchvision.models.segmentation: vision.models.segmentation
torchvision.ops: vision.ops
torchvision.transforms torchvision.transforms.transforms: .pictures.Transforms vision.transforms
torchvision.transforms.functional: .pictures.Transforms vision.transforms.functional
torchvision.utils: vision.utils
"""


def _read(text: str) -> dict[str, list[str]]:
    found = {}
    for line in text.replace("\n    ", " ").strip().splitlines():
        names, _, sources = line.partition(":")
        found.update(dict.fromkeys(names.split(), sources.split()))
    return found


_MODULES = _read(_TABLE)
_LISTED = ("torch.optim", "torchvision.models")  # programs look into their __dict__
_ROOTS = ("torch", "torchvision")
_PAGE = "docs/torch_alias.md says what is there"


def _source(path: str) -> Any:
    """The module below `tenon` at this path, or the class in one."""
    name = f"{__package__}{path}" if path.startswith(".") else f"tenon.{path}"
    module, _, last = name.rpartition(".")
    if last[0].isupper():
        return getattr(importlib.import_module(module), last)
    return importlib.import_module(name)


class AliasModule(ModuleType):
    """A module by the name of one of PyTorch's, whose names are looked up when they are used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__version__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if f"{self.__name__}.{name}" in _MODULES:
            return importlib.import_module(f"{self.__name__}.{name}")
        for path in _MODULES[self.__name__]:
            source = _source(path)
            # What a module has imported for itself is no name of its own.
            if name in vars(source) and name not in getattr(source, "__all__", (name,)):
                continue
            try:
                value = getattr(source, name)
            except AttributeError:
                continue
            if not isinstance(value, ModuleType):  # those of PyTorch's names are in the table
                setattr(self, name, value)
                return value
        raise AttributeError(
            f"{self.__name__}.{name}: Tenon, which stands for PyTorch here, does not have it; {_PAGE}"
        )

    def __dir__(self) -> list[str]:
        sources = [_source(path) for path in _MODULES[self.__name__]]
        names = {each for source in sources for each in getattr(source, "__all__", dir(source))}
        inner = {
            each.rpartition(".")[2] for each in _MODULES if each.rpartition(".")[0] == self.__name__
        }
        return sorted({each for each in names if not each.startswith("_")} | inner)


class _Distribution(importlib.metadata.Distribution):
    """What importlib.metadata says of `torch`: libraries look its version up there."""

    def __init__(self, name: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {VERSION}\n"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        raise FileNotFoundError(f"{path}: PyTorch is not installed; Tenon stands for it")


class _Finder:
    """Finds the modules of the table, and refuses others of PyTorch's before anything else can find them."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] not in _ROOTS:
            return None
        if name not in _MODULES:
            raise ModuleNotFoundError(
                f"{name}: Tenon, which stands for PyTorch here, has no such module; {_PAGE}",
                name=name,
            )
        spec = importlib.machinery.ModuleSpec(name, self, origin=__file__, is_package=True)  # type: ignore[arg-type]
        spec.submodule_search_locations = []
        return spec

    def create_module(self, spec: Any) -> ModuleType:
        return AliasModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = __file__
        if module.__name__ in _LISTED:
            source = _source(_MODULES[module.__name__][-1])
            vars(module).update({name: getattr(source, name) for name in source.__all__})

    def find_distributions(self, context: Any = None) -> Iterable[Any]:
        name = getattr(context, "name", None)
        return [_Distribution(each) for each in _ROOTS if name in (None, each)]


def is_installed() -> bool:
    """Whether `import torch` means Tenon in this process."""
    return isinstance(sys.modules.get("torch"), AliasModule)


def install() -> ModuleType:
    """`import torch` and `import torchvision` mean these modules from here on."""
    finders: Sequence[Any] = sys.meta_path
    if not any(isinstance(each, _Finder) for each in finders):
        sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]
    return importlib.import_module("torch")
