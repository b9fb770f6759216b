# SPDX-License-Identifier: Apache-2.0
"""Modules of PyTorch that libraries import on the way, and whose names they mention without need of them.

Their classes have no objects, so that `isinstance` says no, and their functions are errors when they are called, but for
those that a library calls while it is imported, to register something with what is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .absent import absent_class, absent_function

__all__: list[str] = []


def itself(function: Any = None, *_: Any, **__: Any) -> Any:
    """The function, of which nothing needs to be known; or a decorator that gives it."""
    return function if callable(function) else lambda each: each


def nothing(*_: Any, **__: Any) -> None:
    """There is nothing to register it with."""


def no(*_: Any, **__: Any) -> bool:
    return False


def _space(module: str, names: str = "", **own: Callable[..., Any] | Any) -> type:
    """Names of a module: classes, and functions, which begin with a small letter."""
    found: dict[str, Any] = {}
    for name in names.split():
        is_class = name.lstrip("_")[0].isupper()
        found[name] = (
            absent_class(f"{module}.{name}") if is_class else absent_function(f"{module}.{name}")
        )
    return type(module, (), found | own)


Fx = _space(
    "torch.fx", "Graph GraphModule Interpreter Node Proxy Tracer symbolic_trace", wrap=itself
)
Dynamo = _space(
    "torch._dynamo", "OptimizedModule explain optimize", is_compiling=no, disable=itself, allow_in_graph=itself,
    assume_constant_result=itself, mark_static_address=nothing, reset=nothing,
)  # fmt: skip
Wrapped = _space("torch._dynamo._trace_wrapped_higher_order_op", "TransformGetItemToIndex")
Export = _space("torch.export", "Dim ExportedProgram export load save register_dataclass")
Overrides = _space(
    "torch.overrides",
    "TorchFunctionMode handle_torch_function",
    has_torch_function=no,
    has_torch_function_unary=no,
)
Library = _space(
    "torch.library", "Library", custom_op=lambda *_, **__: itself, register_fake=lambda *_, **__: itself,
    register_autograd=nothing, impl=lambda *_, **__: itself,
)  # fmt: skip
Pytree = _space(
    "torch.utils._pytree", "Context _dict_flatten _dict_flatten_with_keys _dict_unflatten tree_flatten tree_map tree_unflatten", register_pytree_node=nothing,
    _register_pytree_node=nothing, register_constant=nothing,
)  # fmt: skip
Functional = _space(
    "torch.distributed._functional_collectives",
    "AsyncCollectiveTensor all_to_all_single_autograd wait_tensor",
)
States = _space(
    "torch.distributed.checkpoint.state_dict",
    "StateDictOptions get_model_state_dict get_optimizer_state_dict get_state_dict set_model_state_dict set_optimizer_state_dict set_state_dict",
)
Offsets = _space("torch.distributed.tensor._utils", "compute_local_shape_and_global_offset")
Placements = _space("torch.distributed.tensor.placement_types", "_StridedShard")
HuggingFace = _space(
    "torch.distributed.checkpoint.hf_storage", "HuggingFaceStorageReader HuggingFaceStorageWriter"
)
Join = _space("torch.distributed.algorithms.join", "Join Joinable JoinHook")
Checkpoint = _space(
    "torch.distributed.checkpoint",
    "FileSystemReader FileSystemWriter DefaultLoadPlanner DefaultSavePlanner",
)
FullySharded = _space(
    "torch.distributed.fsdp",
    "CPUOffload FullStateDictConfig FullOptimStateDictConfig MixedPrecision ShardedStateDictConfig ShardingStrategy StateDictType",
)
FlexAttention = _space(
    "torch.nn.attention.flex_attention", "AuxRequest BlockMask create_block_mask flex_attention",
    _DEFAULT_SPARSE_BLOCK_SIZE=128,
)  # fmt: skip
Attention = _space("torch.nn.attention", "SDPBackend sdpa_kernel")
Features = _space(
    "torchvision.models.feature_extraction", "create_feature_extractor get_graph_node_names"
)
Files = _space("torchvision.io", "ImageReadMode decode_image read_image write_png")
OptEinsum = _space("torch.backends.opt_einsum", enabled=False, is_available=no, strategy=None)
Sparse = _space("torch.sparse", "FloatTensor as_sparse_gradcheck to_sparse_semi_structured")
