# SPDX-License-Identifier: Apache-2.0
"""Sharded tensors and tensor parallel models in PyTorch's spellings, the same program beside PyTorch with Gloo."""

import json
import os
import socket
import subprocess
import sys

import pytest
import tenon.distributed as dist
from tenon import nn
from tenon.compat import torch

SIZE = 2
# The same text runs with PyTorch and with Tenon.
PROGRAM = """
def work(torch, nn, tensor, parallel, init_device_mesh):
    DTensor, Shard, Replicate, Partial = tensor.DTensor, tensor.Shard, tensor.Replicate, tensor.Partial
    told = {}
    def note(name, *values):
        told[name] = [v.tolist() if hasattr(v, "tolist") else v for v in values]
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    rank = mesh.get_local_rank("tp")
    note("mesh", tuple(mesh.shape), mesh.ndim, mesh.size(), mesh.size(0), mesh.get_coordinate(), mesh.device_type,
         mesh.mesh_dim_names, torch.distributed.get_process_group_ranks(mesh.get_group("tp")), mesh["tp"].ndim)
    whole = torch.arange(24).reshape(4, 6) * 1.0
    x = tensor.distribute_tensor(whole, mesh, [Shard(0)])
    note("distribute_tensor", isinstance(x, DTensor), isinstance(whole, DTensor), x.to_local(), tuple(x.shape), [p.dim for p in x.placements])
    note("default placements", tensor.distribute_tensor(whole, mesh).to_local())
    note("redistribute", x.redistribute(mesh, [Shard(1)]).to_local(), x.redistribute(placements=[Replicate()]).to_local())
    note("full_tensor", x.full_tensor(), x.device_mesh is mesh)
    y = DTensor.from_local(torch.ones(2, 3) * (rank + 1.0), mesh, [Shard(1)])
    note("from_local", tuple(y.shape), y.full_tensor())
    z = DTensor.from_local(torch.ones(3) * (rank + 1.0), mesh, [Partial()])
    note("partial", z.full_tensor(), z.placements[0].reduce_op, z.placements[0].is_partial(), x.placements[0].is_shard(0),
         x.placements[0].is_shard(dim=1), Replicate().is_replicate())
    note("factories", *(f((4, 2), device_mesh=mesh, placements=[Shard(0)]).to_local() for f in (tensor.ones, tensor.zeros)),
         tensor.ones(2, 2, device_mesh=mesh, placements=[Shard(1)]).to_local(),
         tensor.full((2, 4), 7.0, device_mesh=mesh, placements=[Shard(1)]).to_local())

    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)
            with torch.no_grad():
                for p in self.parameters():
                    shape = tuple(p.shape)
                    n = shape[0] * (shape[1] if len(shape) > 1 else 1)
                    p.copy_(((torch.arange(n) * 7 % 5) * 0.25 - 0.5).reshape(shape))
        def forward(self, x):
            return self.down(torch.relu(self.up(x)))
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = Pair(), Pair()
        def forward(self, x):
            return self.last(self.first(x))
    model = parallel.parallelize_module(Two(), mesh, {
        "*.up": parallel.ColwiseParallel(), "*.down": parallel.RowwiseParallel(),
        "last": parallel.PrepareModuleInput(input_layouts=(Replicate(),), desired_input_layouts=(Replicate(),), use_local_output=True)})
    data = torch.arange(12).reshape(3, 4) * 0.5 - 2.0
    out = model(data)
    (out * out).sum().backward()
    note("parallel", out.detach(), model.first.up.weight.to_local().detach(), model.first.up.weight.grad.full_tensor(),
         model.last.down.weight.grad.to_local(), [p.dim for p in model.last.down.weight.placements])

    def partition(name, module, mesh):
        if isinstance(module, nn.Linear):
            cut = nn.Parameter(tensor.distribute_tensor(module.weight.detach(), mesh, [Shard(0)]))
            module.register_parameter("weight", cut)
    pair = tensor.distribute_module(Pair(), mesh, partition,
        input_fn=lambda module, inputs, mesh: tuple(tensor.distribute_tensor(i, mesh) for i in inputs),
        output_fn=lambda module, outputs, mesh: outputs.full_tensor())
    note("distribute_module", pair(data).detach(), [p.dim for p in pair.up.weight.placements], pair.up.bias.placements[0].is_replicate())
    return told
"""


def tenon_work():
    space = {}
    exec(PROGRAM, space)
    d = torch.distributed
    return space["work"](torch, nn, d.tensor, d.tensor.parallel, d.device_mesh.init_device_mesh)


def test_torch():
    with dist.local(SIZE, timeout=30.0) as ranks:
        told = ranks.run(tenon_work)
    assert told[1]["distribute_tensor"][2] == [list(range(12, 18)), list(range(18, 24))]
    assert told[0]["partial"][0] == [3.0] * 3
    assert told[0]["parallel"][0] == told[1]["parallel"][0]


def test_torch_beside_torch(tmp_path):
    pytest.importorskip("torch")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = tmp_path / "peer.py"
    script.write_text(
        PROGRAM
        + """
import json, torch
from torch.distributed import tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import parallel
torch.set_num_threads(1)
print("told", json.dumps(work(torch, torch.nn, tensor, parallel, init_device_mesh)))
torch.distributed.destroy_process_group()
"""
    )
    place = {"WORLD_SIZE": str(SIZE), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    processes = [
        subprocess.Popen(
            [sys.executable, str(script)],
            env={**os.environ, **place, "RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(SIZE)
    ]
    lines = [process.communicate(timeout=120)[0].splitlines() for process in processes]
    theirs = [json.loads(next(x for x in each if x.startswith("told "))[5:]) for each in lines]
    with dist.local(SIZE, timeout=30.0) as ranks:
        ours = json.loads(json.dumps(ranks.run(tenon_work)))
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.keys() == other.keys()
        for name in mine:
            assert mine[name] == other[name], name


def test_what_torch_has_and_is_not_here():
    tensor, parallel = torch.distributed.tensor, torch.distributed.tensor.parallel

    def work():
        mesh = torch.distributed.init_device_mesh("cpu", (SIZE,))
        x = torch.ones(4, 4)
        sharded = tensor.distribute_tensor(x, mesh, [tensor.Shard(0)])
        assert tensor.distribute_tensor(sharded, mesh, [tensor.Shard(0)]) is sharded
        model = nn.Sequential({"pair": nn.Sequential({"up": nn.Linear(4, 4)})})
        up = parallel.ColwiseParallel()
        inputs = parallel.PrepareModuleInput(
            input_layouts=(tensor.Replicate(), None), desired_input_layouts=(tensor.Shard(0), None)
        )
        for call, kind, text in (
            (lambda: tensor.distribute_tensor(x), NotImplementedError, "expected device_mesh"),
            (
                lambda: tensor.distribute_tensor(sharded, mesh, [tensor.Shard(1)]),
                ValueError,
                r"expected a plain tensor, or one on the mesh in the placements \[Shard\(1\)\]",
            ),
            (
                lambda: tensor.DTensor.from_local(x, mesh, run_check=True),
                NotImplementedError,
                "DTensor.from_local: expected run_check to be left out, got True",
            ),
            (
                lambda: torch.distributed.init_device_mesh("cpu", (2,), backend_override={0: "x"}),
                NotImplementedError,
                "init_device_mesh: expected backend_override to be left out",
            ),
            (
                lambda: parallel.parallelize_module(model, mesh, {"*": up, "pair*": up}),
                ValueError,
                "expected one line of the plan for 'pair', got two",
            ),
            # A pattern does not reach over a dot.
            (
                lambda: parallel.parallelize_module(model, mesh, {"*up": up}),
                ValueError,
                r"expected a module that '\*up' names, got none; there are \['pair', 'pair.up'\]",
            ),
            (
                lambda: parallel.parallelize_module(model, mesh, {"*.*": up}, src_data_rank=1),
                NotImplementedError,
                "parallelize_module: expected src_data_rank to be left out, got 1",
            ),
            (
                lambda: parallel.PrepareModuleInput(input_kwarg_layouts={"x": tensor.Shard(0)}),
                NotImplementedError,
                "PrepareModuleInput: expected input_kwarg_layouts to be left out",
            ),
            (
                lambda: parallel.PrepareModuleInput(
                    input_layouts=None, desired_input_layouts=tensor.Shard(0)
                ),
                ValueError,
                "expected as many input_layouts as desired_input_layouts, got 0 and 1",
            ),
            (
                lambda: parallel.PrepareModuleInput(
                    input_layouts=(None,), desired_input_layouts=(tensor.Shard(0),)
                ),
                ValueError,
                "expected None in both of input_layouts and desired_input_layouts",
            ),
            (
                lambda: parallel.parallelize_module(model, mesh, inputs)(x),
                ValueError,
                "PrepareModuleInput of '': expected 2 arguments, as input_layouts say, got 1",
            ),
        ):
            with pytest.raises(kind, match=text):
                call()
        x = tensor.randn(4, 2, device_mesh=mesh, placements=[tensor.Shard(0)])
        assert tuple(x.to_local().shape) == (2, 2) and tuple(x.shape) == (4, 2)
        with pytest.warns(UserWarning, match="there is no plan, and nothing is done"):
            assert parallel.parallelize_module(model, mesh) is model
        for name in ("PrepareModuleOutput", "PrepareModuleInputOutput", "loss_parallel"):
            assert not hasattr(parallel, name)

    with dist.local(SIZE) as ranks:
        ranks.run(work)
