# SPDX-License-Identifier: Apache-2.0
"""Training on several ranks: groups and their calls, data parallel models, optimizers that share their state.

    import tenon.distributed as dist
    dist.init_process_group()                  # tenon run -n 4 train.py
    model = dist.DistributedDataParallel(model)

Ranks that differ in a call, and ranks that died, hang or failed, are named on all the others (docs/distributed.md).
What a rank says is neither encrypted nor hidden from other users of the network: trusted networks only.
"""

from . import checkpoint, comm_hooks, functional, ps, rpc
from .calls import (
    P2POp,
    ReduceOp,
    all_gather,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    broadcast_object,
    gather,
    irecv,
    isend,
    recv,
    reduce,
    reduce_scatter_tensor,
    scatter,
    send,
)
from .context import ContextParallel
from .data_parallel import DistributedDataParallel
from .dtensor import DTensor, distribute_tensor, from_local, local_map
from .errors import (
    CollectiveAborted,
    CollectiveError,
    CollectiveMismatch,
    CollectiveTimeout,
    PeerFailed,
)
from .experts import ExpertParallel, MoELayer
from .fake import fake
from .fully_shard import fully_shard, whole_parameters
from .futures import Future
from .grad_scaler import GradScaler
from .group import ProcessGroup
from .local import LocalRanks, local
from .mesh import DeviceMesh, init_device_mesh
from .norms import clip_grad_norm_
from .pipelines import Pipeline, Schedule, pipeline
from .placements import Partial, Placement, Replicate, Shard
from .planning import (
    Link,
    Machine,
    Plan,
    Recipe,
    auto,
    calibrate,
    play_schedule,
    predict,
    trace_step,
    tune,
)
from .reshards import reshard_policy, reshard_report, set_sharding_rules
from .sampler import DistributedBatchSampler
from .store import FileStore, LocalStore, Store, TcpStore, serve_store
from .tensor_parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from .vocabulary import vocab_parallel_cross_entropy
from .work import Work
from .world import (
    abort,
    destroy_process_group,
    dump,
    get_local_rank,
    get_rank,
    get_world_size,
    init_process_group,
    is_initialized,
    new_group,
    world,
)
from .zero import ZeroRedundancyOptimizer

__all__ = [
    "CollectiveAborted",
    "CollectiveError",
    "CollectiveMismatch",
    "CollectiveTimeout",
    "ContextParallel",
    "ColwiseParallel",
    "DTensor",
    "DeviceMesh",
    "DistributedBatchSampler",
    "DistributedDataParallel",
    "ExpertParallel",
    "FileStore",
    "Future",
    "GradScaler",
    "Link",
    "LocalRanks",
    "LocalStore",
    "Machine",
    "MoELayer",
    "P2POp",
    "ParallelStyle",
    "Partial",
    "PeerFailed",
    "Pipeline",
    "Placement",
    "Plan",
    "PrepareModuleInput",
    "ProcessGroup",
    "Recipe",
    "ReduceOp",
    "Replicate",
    "RowwiseParallel",
    "Schedule",
    "SequenceParallel",
    "Shard",
    "Store",
    "TcpStore",
    "Work",
    "ZeroRedundancyOptimizer",
    "abort",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "auto",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object",
    "calibrate",
    "checkpoint",
    "clip_grad_norm_",
    "comm_hooks",
    "destroy_process_group",
    "distribute_tensor",
    "dump",
    "fake",
    "from_local",
    "fully_shard",
    "functional",
    "gather",
    "get_local_rank",
    "get_rank",
    "get_world_size",
    "init_device_mesh",
    "init_process_group",
    "irecv",
    "is_initialized",
    "isend",
    "local",
    "local_map",
    "new_group",
    "parallelize_module",
    "pipeline",
    "play_schedule",
    "predict",
    "ps",
    "recv",
    "reduce",
    "reduce_scatter_tensor",
    "reshard_policy",
    "reshard_report",
    "rpc",
    "scatter",
    "send",
    "serve_store",
    "set_sharding_rules",
    "trace_step",
    "tune",
    "vocab_parallel_cross_entropy",
    "whole_parameters",
    "world",
]
