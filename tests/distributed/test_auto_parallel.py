# SPDX-License-Identifier: Apache-2.0
"""Plans that are chosen are the cheapest where all can be tried, and models that follow them compute what they did."""

import itertools
import json

import pytest
import tenon
import tenon.distributed as dist
from tenon import nn
from tenon.distributed import Replicate, Shard
from tenon.distributed.planning.auto import search
from tenon.distributed.planning.auto.choices import leaves_of, states_of
from tenon.distributed.planning.auto.costs import Like
from tenon.distributed.planning.auto.plan import _Step
from tenon.distributed.planning.auto.search import chain_of

mse = nn.functional.mse_loss
RANKS = 4
BUSY = dist.Machine(1e9, 1e9, 1e-6, {"world": dist.Link.of(1e9, 1e-5), "axis 0": dist.Link.of(1e9)})
SLOW = dist.Machine(1e9, 1e9, 1e-6, {"axis 0": dist.Link.of(1e7)})


def mlp(width, hidden):
    tenon.manual_seed(0)
    return nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))


def planned(model, rows, width, machine=BUSY, **options):
    x = tenon.empty([rows, width], device="meta")
    options.setdefault("optimizer_states", 0)
    return dist.auto(model, (RANKS,), x, loss=mse, target=x, machine=machine, **options)


def every_plan(model, rows, width, machine):
    """Seconds of a step in each combination of placements of weights and inputs."""
    like = Like((rows, width), tenon.float32)
    step = _Step(model, like, mse, like, (RANKS,), None, 0)
    leaves = [
        (link.name, leaf)
        for link in chain_of(model, like)
        for leaf in leaves_of(link.module, link.name, (RANKS,), {})
    ]
    for at in states_of(like.shape, (RANKS,)):
        for choice in itertools.product(*(leaf.options for _, leaf in leaves)):
            named = zip(leaves, choice, strict=True)
            parameters = {f"{n}.{key}": p for (n, _), style in named for key, p in style}
            yield dist.predict(step.traced(at, parameters, {})[0], machine).seconds


def test_no_plan_is_five_percent_cheaper():
    """Of all that cut weights and the batch; `tests/distributed/run auto` tries more models."""
    rows, width, hidden, machine = 64, 64, 256, BUSY
    model = mlp(width, hidden)
    found = planned(model, rows, width, machine).prediction.seconds
    best = min(every_plan(model, rows, width, machine))
    assert found <= 1.05 * best


def test_columns_then_rows_or_the_batch_as_links_are():
    """Many weights for few rows: the hidden part is cut. Many rows: the batch is, and gradients are summed."""
    few = planned(mlp(256, 1024), 16, 256)
    assert few.parameters["0.weight"] == (Shard(0),) and few.parameters["2.weight"] == (Shard(1),)
    many = planned(mlp(16, 16), 4096, 16, SLOW)
    assert many.inputs == (Shard(0),) and many.trace.bytes_sent > 0


@pytest.mark.parametrize("machine", [BUSY, SLOW], ids=["busy", "slow"])
def test_a_planned_model_computes_what_it_did(machine):
    plan = planned(mlp(32, 64), 64, 32, machine)
    tenon.manual_seed(1)
    x, y = tenon.randn([64, 32]), tenon.randn([64, 32])

    def results(loss, model):
        grads = [p.grad for p in model.parameters()]
        whole = [t.full_tensor() if isinstance(t, dist.DTensor) else t for t in (loss, *grads)]
        return [each.detach().clone() for each in whole]

    def work():
        mesh = dist.init_device_mesh("cpu", (RANKS,))
        model = plan.apply(mlp(32, 64), mesh)
        assert {n: p.placements for n, p in model.named_parameters()} == plan.parameters
        loss = mse(model(x), y)
        loss.backward()
        return results(loss, model)

    model = mlp(32, 64)
    loss = mse(model(x), y)
    loss.backward()
    want = results(loss, model)
    with dist.local(RANKS, timeout=60.0) as ranks:
        for got in ranks.run(work):
            for a, b in zip(got, want, strict=True):
                assert float((a - b).abs().max().item()) < 1e-5


class Block(nn.Module):
    """Not a chain inside, and with more choices than are all tried."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)
        self.c, self.d = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.b(nn.functional.relu(self.a(self.norm(x))))
        return x + self.d(nn.functional.relu(self.c(self.norm2(x))))


def test_equal_blocks_are_solved_once_and_a_beam_finds_pairs(monkeypatch):
    monkeypatch.setattr(search, "_ALL", 8)
    solved = []
    model = nn.Sequential(*[Block(32) for _ in range(5)])
    plan = planned(
        model, 16, 32, beam=2, inputs=[Replicate()], notify=lambda name, runs: solved.append(name)
    )
    assert {name for name in solved} == {"0", "1"}  # the first one's input needs no gradient
    assert plan.parameters["3.c.weight"] == (Shard(0),)
    assert plan.parameters["3.d.weight"] == (Shard(1),)
    assert plan.parameters["2.c.weight"] == plan.parameters["4.c.weight"]


class Bottleneck(nn.Module):
    """A module that prints nothing of its sizes."""

    def __init__(self, hidden):
        super().__init__()
        self.down = nn.Parameter(tenon.ones([64, hidden]))
        self.up = nn.Parameter(tenon.ones([hidden, 64]))

    def forward(self, x):
        return x @ self.down @ self.up


def test_modules_that_look_alike_are_solved_by_their_sizes():
    plan = planned(nn.Sequential(*map(Bottleneck, (8, 8, 2048))), 64, 64)
    narrow, wide = plan.solution.steps[1:]
    assert wide.cost.kept > 16 * narrow.cost.kept


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.there = nn.Linear(16, 16, bias=False)
        self.back = nn.Linear(16, 16, bias=False)
        self.back.weight = self.there.weight

    def forward(self, x):
        return self.back(self.there(x))


def test_a_parameter_in_two_places_stays_one():
    model = Tied()
    plan = planned(model, 8, 16)
    assert list(plan.parameters) == ["there.weight"]
    with dist.fake(RANKS, 0):
        plan.apply(model, dist.init_device_mesh("cpu", (RANKS,)))
    assert model.back.weight is model.there.weight and model.back.weight.layout == "sharded"


def test_arguments_that_are_refused():
    with pytest.raises(
        ValueError, match=r"inputs to have a placement for each of the mesh's 1 axes"
    ):
        planned(mlp(64, 64), 64, 64, inputs=[Replicate(), Replicate()])
    with pytest.raises(ValueError, match=r"placements\['0.*'\] to have a placement for each"):
        planned(mlp(64, 64), 64, 64, placements={"0.*": []})
    with pytest.raises(
        ValueError, match=r"optimizer_states=0 \(SGD\), 1 \(momentum\) or 2 \(Adam\)"
    ):
        planned(mlp(64, 64), 64, 64, optimizer_states=3)
    with pytest.raises(ValueError, match="expected a beam of 1 or more, got 0"):
        planned(mlp(64, 64), 64, 64, beam=0)


def test_placements_of_users_are_constraints():
    plan = planned(
        mlp(64, 256),
        64,
        64,
        placements={"0.*": [Replicate()]},
        inputs=[Shard(0)],
    )
    assert plan.parameters["0.weight"] == (Replicate(),) and plan.inputs == (Shard(0),)
    with pytest.raises(
        ValueError, match="expected parameters that 'up.*' names, got none; there are 0.weight"
    ):
        planned(mlp(64, 256), 64, 64, placements={"up.*": [Replicate()]})


def test_a_limit_of_memory_cuts_what_is_kept():
    free = planned(mlp(256, 256), 2048, 256, SLOW)
    limit = int(0.9 * free.solution.memory)
    tight = planned(mlp(256, 256), 2048, 256, SLOW, memory=limit)
    assert tight.solution.memory <= limit and tight.solution.seconds >= free.solution.seconds
    with pytest.raises(
        ValueError, match="expected placements that take 1,000 bytes of a rank at most, got"
    ):
        planned(mlp(256, 256), 64, 256, memory=1000)


def test_what_a_plan_says():
    plan = planned(mlp(256, 1024), 16, 256)
    assert "a step takes" in repr(plan) and "0.weight: Shard(0)" in repr(plan)
    text = plan.explain()
    assert "otherwise:" in text and "of the step" in text and "bytes" in text
    told = json.loads(plan.to_json())
    assert told["parameters"]["2.weight"] == "Shard(1)" and told["seconds"] > 0
    with pytest.raises(ValueError, match=r"Plan.apply: expected a mesh of shape \(4,\)"):
        with dist.local(2) as ranks:
            ranks.run(lambda: plan.apply(mlp(256, 1024), dist.init_device_mesh("cpu", (2,))))


def test_two_axes_of_a_mesh():
    links = {"dp": dist.Link.of(1e9), "tp": dist.Link.of(1e9)}
    machine = dist.Machine(1e9, 1e9, 1e-6, links)

    def work():
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        x = tenon.ones([2048, 16])
        # A rank of a job asks for a plan: it is made apart, and the same on all of them.
        model = mlp(16, 32)
        plan = dist.auto(model, mesh, x, loss=mse, target=x, machine=machine)
        plan.apply(model, mesh)(x).full_tensor()
        return plan.to_json()

    with dist.local(4, timeout=60.0) as ranks:
        told = ranks.run(work)
    assert len(set(told)) == 1
    assert json.loads(told[0])["inputs"].startswith("Shard(0)")
