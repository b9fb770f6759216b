# SPDX-License-Identifier: Apache-2.0
"""What distributed.py times: by name, functions of a size that make the call of one rank."""

from __future__ import annotations

HEADS, FEATURES, LAYERS, EXPERTS = 8, 64, 8, 8


def tenon_calls():
    import tenon
    import tenon.distributed as dist
    from tenon import nn, optim
    from tenon.distributed.prefetch import GatherOrder

    if not dist.is_initialized():
        dist.init_process_group()
    ahead = GatherOrder.gather

    def all_reduce(count):
        x = tenon.zeros([count])
        return lambda: dist.all_reduce(x)

    def fully_shard(width, is_ahead=True):
        tenon.manual_seed(0)
        model = nn.Sequential(*[nn.Linear(width, width) for _ in range(LAYERS)])
        for layer in model:
            dist.fully_shard(layer)
        optimizer = optim.SGD(model.parameters(), lr=1e-3)
        x = tenon.randn([64, width])

        def step():
            GatherOrder.gather = ahead if is_ahead else lambda order, unit: unit.start()()
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()

        return step

    def experts(width):
        tenon.manual_seed(0)
        layer = dist.MoELayer(
            nn.Linear(width, EXPERTS, bias=False),
            [
                nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
                for _ in range(EXPERTS)
            ],
        )
        x = tenon.randn([512, width], requires_grad=True)
        return lambda: layer(x).square().mean().backward()

    def attention(length, method):
        context = dist.ContextParallel(method=method)
        shape = [1, HEADS, length // context.group.size, FEATURES]
        q, k, v = (tenon.randn(shape, requires_grad=True) for _ in range(3))
        return lambda: context.attention(q, k, v, causal=True).sum().backward()

    return {
        "all_reduce": all_reduce,
        "fully_shard": fully_shard,
        "fully_shard_not_ahead": lambda width: fully_shard(width, False),
        "experts": experts,
        "ring_attention": lambda length: attention(length, "ring"),
        "attention_by_heads": lambda length: attention(length, "heads"),
    }


def torch_calls():
    """PyTorch over Gloo. It has no layer of experts, nor attention to sequences in parts that runs on the CPU: what stands
    here are the calls that a program would make itself."""
    import torch
    import torch.distributed as dist
    import torch.distributed.nn.functional as functional
    from torch import nn

    if not dist.is_initialized():
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
    size = dist.get_world_size()

    def all_reduce(count):
        x = torch.zeros([count])
        return lambda: dist.all_reduce(x)

    def fully_shard(width):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        torch.manual_seed(0)
        mesh = init_device_mesh("cpu", (size,))
        model = nn.Sequential(*[nn.Linear(width, width) for _ in range(LAYERS)])
        for layer in model:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        x = torch.randn([64, width])

        def step():
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()

        return step

    def attention_by_heads(length):
        """Keys and values of all positions, gathered."""
        shape = [1, HEADS, length // size, FEATURES]
        q, k, v = (torch.randn(shape, requires_grad=True) for _ in range(3))
        rank = dist.get_rank()
        rows = torch.arange(length // size).reshape([-1, 1]) + rank * (length // size)
        mask = rows >= torch.arange(length)

        def step():
            whole = [torch.cat(functional.all_gather(x), 2) for x in (k, v)]
            out = torch.nn.functional.scaled_dot_product_attention(q, *whole, attn_mask=mask)
            out.sum().backward()

        return step

    return {
        "all_reduce": all_reduce,
        "fully_shard": fully_shard,
        "attention_by_heads": attention_by_heads,
        "ring_attention": attention_by_heads,
    }
