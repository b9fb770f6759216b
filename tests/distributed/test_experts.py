# SPDX-License-Identifier: Apache-2.0
"""Experts that are divided over ranks: the numbers of one process that has all of them."""

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from ranks import Processes
from tenon import nn, optim
from tenon.nn import functional as F

WIDTH, EXPERTS, STEPS, TOKENS = 6, 5, 4, 16
INPUTS = np.random.default_rng(0).normal(size=(STEPS, TOKENS, WIDTH)).astype("f4")
TARGETS = np.random.default_rng(1).normal(size=(STEPS, TOKENS, WIDTH)).astype("f4")


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 8), nn.Linear(8, WIDTH)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Net(nn.Module):
    """Two layers of experts between what all ranks have."""

    def __init__(self, **options):
        super().__init__()
        tenon.manual_seed(3)
        self.into = nn.Linear(WIDTH, WIDTH)
        self.first = self.layer(**options)
        self.second = self.layer(**options)

    @staticmethod
    def layer(**options):
        gate = nn.Linear(WIDTH, EXPERTS, bias=False)
        return dist.MoELayer(gate, [Expert() for _ in range(EXPERTS)], **options)

    def forward(self, x):
        x = self.into(x)
        x = x + self.first(x)
        return x + self.second(x)


class Whole(nn.Module):
    """The same without ranks, of other parts."""

    def __init__(self):
        super().__init__()
        tenon.manual_seed(3)
        self.into = nn.Linear(WIDTH, WIDTH)
        self.gates, self.experts = nn.ModuleList(), nn.ModuleList()
        for _ in range(2):
            self.gates.append(nn.Linear(WIDTH, EXPERTS, bias=False))
            self.experts.append(nn.ModuleList([Expert() for _ in range(EXPERTS)]))

    def forward(self, x):
        x = self.into(x)
        for gate, experts in zip(self.gates, self.experts, strict=True):
            x = x + F.mixture_of_experts(x, gate(x), list(experts), 2)
        return x

    def named(self):
        """By the names of Net."""
        for name, p in self.named_parameters():
            kind, _, rest = name.partition(".")
            layer, _, rest = rest.partition(".")
            if kind == "into":
                yield name, p
            else:
                part = "gate" if kind == "gates" else "experts"
                yield f"{('first', 'second')[int(layer)]}.{part}.{rest}", p


def values_of(named):
    return {
        name: (p.detach().numpy().copy(), None if p.grad is None else p.grad.numpy().copy())
        for name, p in named
    }


def batch(step, rank=0, size=1):
    own = slice(TOKENS * rank // size, TOKENS * (rank + 1) // size)
    return tenon.tensor(INPUTS[step][own]), tenon.tensor(TARGETS[step][own])


def loss_of(out, target):
    return ((out - target) ** 2).mean()


def train_whole():
    """One process: values and gradients after each step, by name."""
    model = Whole()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    history = []
    for step in range(STEPS):
        optimizer.zero_grad()
        x, target = batch(step)
        loss_of(model(x), target).backward()
        optimizer.step()
        history.append(values_of(model.named()))
    return history


def groups_of(size):
    """Experts over `size` ranks, and the ranks with the same ones."""
    rank, world = dist.get_rank(), dist.world()
    if size == world.size:
        return {}
    return {
        "process_group": world.split(rank // size, name="ep"),
        "replicas": world.split(rank % size, name="replicas"),
    }


def train(parts, clip=None, steps=STEPS, wrap_options=None):
    rank, size = dist.get_rank(), dist.get_world_size()
    model = Net(**groups_of(parts))
    if rank:  # what counts is what the first rank has
        with tenon.no_grad():
            for name, p in model.named_parameters():
                if "experts" not in name or rank >= parts:
                    p.add_(1.0)
    wrapped = dist.DistributedDataParallel(model, **(wrap_options or {}))
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    history, norms = [], []
    for step in range(steps):
        optimizer.zero_grad()
        x, target = batch(step, rank, size)
        loss_of(wrapped(x), target).backward()
        if clip is not None:
            norms.append(dist.clip_grad_norm_(model.parameters(), clip).item())
        optimizer.step()
        history.append(values_of(model.named_parameters()))
    return (history, norms) if clip is not None else history


def in_ranks(size, work, *args, **options):
    with dist.local(size, timeout=60.0) as ranks:
        return ranks.run(work, *args, **options)


@pytest.fixture(scope="module")
def whole_history():
    return train_whole()


def compare(histories, expected):
    for step, want in enumerate(expected):
        found = set()
        for history in histories:
            for name, (value, grad) in history[step].items():
                found.add(name)
                np.testing.assert_allclose(value, want[name][0], rtol=1e-5, atol=1e-5)
                want_grad = np.zeros_like(value) if want[name][1] is None else want[name][1]
                np.testing.assert_allclose(grad, want_grad, rtol=1e-4, atol=1e-6)
        assert found == set(want)


@pytest.mark.parametrize(("size", "parts"), [(1, 1), (2, 2), (4, 4), (4, 2), (2, 1)])
def test_expert_gradient_over_batch_shards(size, parts, whole_history):
    """Training is that of one process. Experts on 2 of 4 ranks are divided by 4, as the others."""
    if parts == 1 and size > 1:
        histories = in_ranks(size, train, 1)
    else:
        histories = in_ranks(size, train, parts)
    compare(histories, whole_history)


@pytest.mark.parametrize(("size", "parts"), [(2, 2), (4, 2)])
def test_beside_parameters_in_parts(size, parts, whole_history):
    """fully_shard of what is no expert: a mixture of experts, of which no rank has a whole layer."""

    def work():
        rank = dist.get_rank()
        model = Net(**groups_of(parts))
        dist.fully_shard(model.into)
        dist.fully_shard(model.second.gate)
        wrapped = dist.DistributedDataParallel(model)
        optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        norms = []
        for step in range(STEPS):
            optimizer.zero_grad()
            x, target = batch(step, rank, size)
            loss_of(wrapped(x), target).backward()
            norms.append(dist.clip_grad_norm_(model.parameters(), 1e9).item())
            optimizer.step()
        with dist.whole_parameters(model):
            into = model.into.weight.detach().numpy().copy()
            gate = model.second.gate.weight.detach().numpy().copy()
        experts = values_of(model.first.experts.named_parameters())
        return norms, into, gate, {name: value for name, (value, _) in experts.items()}

    want = whole_history[-1]
    squares = [
        sum(0.0 if grad is None else (grad.astype("f8") ** 2).sum() for _, grad in step.values())
        for step in whole_history
    ]
    for norms, into, gate, experts in in_ranks(size, work):
        np.testing.assert_allclose(norms, np.sqrt(squares), rtol=1e-4)
        np.testing.assert_allclose(into, want["into.weight"][0], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(gate, want["second.gate.weight"][0], rtol=1e-5, atol=1e-5)
        for name, value in experts.items():
            expected = want[f"first.experts.{name}"][0]
            np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5)


def test_parts_of_other_ranks_are_refused():
    def work():
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        dist.fully_shard(model[0], dist.world().split(dist.get_rank()))
        with pytest.raises(
            ValueError, match=r"parts of 0\.weight on ranks \[0, 1\], as .*got \[\d\]"
        ):
            dist.DistributedDataParallel(model)

    in_ranks(2, work)


def test_small_buckets_and_unused_parameters(whole_history):
    options = {"bucket_cap_mb": 1e-4, "find_unused_parameters": True}
    compare(in_ranks(4, train, 2, wrap_options=options), whole_history)


def test_after_a_pass_that_raised():
    """On all ranks, behind gradients of the second layer: the next pass is as any other."""

    def work():
        rank, size = dist.get_rank(), dist.get_world_size()
        model = Net(**groups_of(2))
        wrapped = dist.DistributedDataParallel(model, bucket_cap_mb=1e-4)
        x, target = batch(0, rank, size)

        def fail(grad):
            raise RuntimeError("on purpose")

        hook = model.into.weight.register_hook(fail)
        with pytest.raises(RuntimeError, match="on purpose"):
            loss_of(wrapped(x), target).backward()
        hook.remove()
        for p in model.parameters():
            p.grad = None
        loss_of(wrapped(x), target).backward()
        return values_of(model.named_parameters())

    model = Whole()
    x, target = batch(0)
    loss_of(model(x), target).backward()
    want = values_of(model.named())
    for got in in_ranks(4, work):
        for name, (_, grad) in got.items():
            np.testing.assert_allclose(grad, want[name][1], rtol=1e-4, atol=1e-6)


def test_ranks_have_their_experts_and_names():
    def work():
        names = [name for name, _ in Net().named_parameters() if name.startswith("first.experts")]
        return sorted({int(name.split(".")[2]) for name in names})

    assert in_ranks(2, work) == [[0, 1], [2, 3, 4]]
    assert in_ranks(4, work) == [[0], [1], [2], [3, 4]]


def test_gradients_add_up():
    """Passes without zero_grad between them: what was averaged before is not divided again."""

    def work():
        rank, size = dist.get_rank(), dist.get_world_size()
        model = Net(**groups_of(2))
        wrapped = dist.DistributedDataParallel(model)
        for step in range(2):
            x, target = batch(step, rank, size)
            loss_of(wrapped(x), target).backward()
        apart = values_of(model.named_parameters())
        for p in model.parameters():
            p.grad = None
        with wrapped.no_sync():
            x, target = batch(0, rank, size)
            loss_of(wrapped(x), target).backward()
        x, target = batch(1, rank, size)
        loss_of(wrapped(x), target).backward()
        return apart, values_of(model.named_parameters())

    model = Whole()
    for step in range(2):
        x, target = batch(step)
        loss_of(model(x), target).backward()
    want = values_of(model.named())
    for apart, together in in_ranks(4, work):
        for name in apart:
            for got in (apart, together):
                np.testing.assert_allclose(got[name][1], want[name][1], rtol=1e-4, atol=1e-6)


def test_parameters_that_took_the_place_of_others():
    def work():
        layer = dist.ExpertParallel([nn.Linear(2, 2, bias=False) for _ in range(2)])
        own = layer.get_submodule(str(dist.get_rank()))
        own.weight = nn.Parameter(tenon.full([2, 2], float(dist.get_rank())))
        wrapped = dist.DistributedDataParallel(layer)
        weights = tenon.ones([1, 2])
        wrapped(tenon.ones([1, 2]), weights, tenon.tensor([[0, 1]])).sum().backward()
        return own.weight.detach().tolist(), own.weight.grad.tolist()

    # Not those of rank 0, and the gradients of both ranks' tokens divided by 2.
    want = [([[float(rank)] * 2] * 2, [[1.0] * 2] * 2) for rank in range(2)]
    assert in_ranks(2, work) == want


def test_no_token_for_an_expert():
    """It is called with no row, has zeros as gradient, and what others have is right; also where a rank has no token."""

    def work(tokens_of_last):
        tenon.manual_seed(1)
        experts = [Expert() for _ in range(4)]
        layer = dist.ExpertParallel(experts)
        rank = dist.get_rank()
        count = 3 if rank == 0 else tokens_of_last
        x = tenon.tensor(INPUTS[0][:count], requires_grad=True)
        chosen = tenon.ones([count, 1], dtype=tenon.int64)  # all of them expert 1, which rank 0 has
        y = layer(x, tenon.ones([count, 1]), chosen)
        assert y.shape == (count, WIDTH)
        y.sum().backward()
        assert x.grad.shape == x.shape
        return {name: p.grad.numpy().copy() for name, p in layer.named_parameters()}

    for tokens_of_last in (3, 0):
        first, second = in_ranks(2, work, tokens_of_last)
        assert all((grad == 0).all() for grad in second.values())
        assert all((grad == 0).all() for name, grad in first.items() if name.startswith("0."))
        np.testing.assert_allclose(first["1.down.bias"], np.full(WIDTH, 3.0 + tokens_of_last))


@pytest.mark.parametrize("size", [1, 2])
def test_capacity(size):
    """The first rows of each rank's tokens are kept, and the rest adds nothing."""
    x = INPUTS[0][:8]
    chosen = np.array([[0, 1], [0, 2], [0, 1], [0, 3], [1, 0], [0, 2], [2, 3], [0, 1]])
    weights = np.linspace(0.1, 0.9, 16).reshape(8, 2).astype("f4")

    def layer_of(**options):
        tenon.manual_seed(1)
        return dist.ExpertParallel([Expert() for _ in range(4)], **options)

    def work():
        rank = dist.get_rank()
        own = slice(8 * rank // size, 8 * (rank + 1) // size)
        layer = layer_of(capacity_factor=1.0)
        given = tenon.tensor(weights[own], requires_grad=True)
        y = layer(tenon.tensor(x[own]), given, tenon.tensor(chosen[own]))
        y.sum().backward()
        return y.detach().numpy(), given.grad.numpy(), layer.dropped

    def exact():
        with tenon.no_grad():
            given = (x, weights * kept, chosen)
            return layer_of()(*map(tenon.tensor, given)).numpy()

    kept = np.ones_like(weights)
    for part in np.array_split(np.arange(8), size):
        taken = np.zeros(4, dtype=int)
        for token in part:
            for choice, expert in enumerate(chosen[token]):
                kept[token, choice] = taken[expert] < len(part) * 2 / 4
                taken[expert] += 1
    told = in_ranks(size, work)
    assert sum(dropped for _, _, dropped in told) == int((kept == 0).sum()) > 0
    np.testing.assert_allclose(
        np.concatenate([y for y, _, _ in told]), in_ranks(1, exact)[0], rtol=1e-5, atol=1e-6
    )
    grads = np.concatenate([grad for _, grad, _ in told])
    assert ((grads == 0) == (kept == 0)).all()


def test_norms_count_once():
    """Clipping sees each expert once, on whatever ranks it is, and gives all ranks one norm."""
    model = Whole()
    x, target = batch(0)
    loss_of(model(x), target).backward()
    grads = [np.zeros(1) if p.grad is None else p.grad.numpy() for p in model.parameters()]
    want = np.sqrt(sum((grad.astype("f8") ** 2).sum() for grad in grads))
    for size, parts in ((2, 2), (4, 2), (4, 4)):
        told = in_ranks(size, train, parts, clip=0.01, steps=1)
        norms = {norms[0] for _, norms in told}
        assert len(norms) == 1
        np.testing.assert_allclose(norms.pop(), want, rtol=1e-5)
        clipped = {}
        for history, _ in told:
            clipped.update({name: grad for name, (_, grad) in history[0].items()})
        total = np.sqrt(sum((grad.astype("f8") ** 2).sum() for grad in clipped.values()))
        np.testing.assert_allclose(total, 0.01, rtol=1e-3)


def test_what_counts_elements_by_rank_is_refused():
    def work():
        model = Net()
        for p in model.parameters():
            p.grad = tenon.zeros_like(p)
        with pytest.raises(ValueError, match=r"use tenon\.distributed\.clip_grad_norm_"):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler = tenon.amp.GradScaler()
        with pytest.raises(ValueError, match=r"use tenon\.distributed\.GradScaler"):
            scaler.unscale_(optim.SGD(model.parameters(), lr=0.1))
        with pytest.raises(NotImplementedError, match="experts an optimizer of their own"):
            dist.ZeroRedundancyOptimizer(model.parameters(), optim.AdamW, lr=0.1)
        with pytest.raises(NotImplementedError, match=r"got experts\.\d\.up\.weight of an"):
            dist.fully_shard(model.first)

    in_ranks(2, work)


def test_a_step_is_left_out_by_all_ranks():
    """What is infinite in an expert of one rank."""

    def work():
        tenon.manual_seed(2)
        layer = dist.ExpertParallel([nn.Linear(WIDTH, WIDTH) for _ in range(2)])
        before = [p.detach().numpy().copy() for p in layer.parameters()]
        optimizer = optim.SGD(layer.parameters(), lr=0.1)
        scaler = dist.GradScaler(init_scale=8.0)
        for p in layer.parameters():
            p.grad = tenon.full_like(p, float("inf") if dist.get_rank() == 1 else 1.0)
        scaler.scale(tenon.ones([]))
        scaler.step(optimizer)
        scaler.update()
        after = [p.detach().numpy() for p in layer.parameters()]
        return all((a == b).all() for a, b in zip(after, before, strict=True)), scaler.get_scale()

    assert in_ranks(2, work) == [(True, 4.0), (True, 4.0)]


def test_balance_loss():
    def work(parts):
        rank, size = dist.get_rank(), dist.get_world_size()
        tenon.manual_seed(1)
        layer = dist.MoELayer(
            nn.Linear(WIDTH, 4, bias=False), [Expert() for _ in range(4)], **groups_of(parts)
        )
        wrapped = dist.DistributedDataParallel(layer)
        x, _ = batch(0, rank, size)
        (wrapped(x).sum() * 0 + layer.balance_loss()).backward()
        with pytest.raises(RuntimeError, match=r"one balance_loss\(\) for each call"):
            layer.balance_loss()
        wrapped(x)
        return layer.balance_loss().item(), layer.gate.weight.grad.numpy()

    (want, want_grad), *_ = in_ranks(1, work, 1)
    tenon.manual_seed(1)
    logits = nn.Linear(WIDTH, 4, bias=False)(tenon.tensor(INPUTS[0]))
    shares = np.bincount(tenon.topk(logits, 2, -1)[1].numpy().reshape(-1), minlength=4) / 32
    by_hand = 4 * (shares * tenon.softmax(logits, -1).mean(0).detach().numpy()).sum()
    np.testing.assert_allclose(want, by_hand, rtol=1e-5)
    for size, parts in ((2, 2), (4, 2)):
        for loss, grad in in_ranks(size, work, parts):
            np.testing.assert_allclose(loss, want, rtol=1e-5)
            np.testing.assert_allclose(grad, want_grad, rtol=1e-4, atol=1e-7)


def test_as_processes(whole_history):
    program = """
        import pickle
        from test_experts import train
        dist.init_process_group(timeout=60)
        sys.stdout.buffer.write(pickle.dumps(train(size)).hex().encode())
    """
    import os
    import pickle

    here = os.path.dirname(os.path.abspath(__file__))
    path = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    with Processes(2, program, PYTHONPATH=path) as ranks:
        told = ranks.finish()
    assert all(out for out, _ in told), told[0][1][-2000:]
    histories = [pickle.loads(bytes.fromhex(out)) for out, _ in told]
    compare(histories, whole_history)
    # The bits of ranks in one process.
    for got, want in zip(histories, in_ranks(2, train, 2), strict=True):
        for name, (value, _) in got[-1].items():
            assert value.tobytes() == want[-1][name][0].tobytes()


def test_checkpoints(tmp_path):
    """Experts have the names of a model that has all, and load on any number of ranks."""

    def save():
        model = Net()
        dist.checkpoint.save({"model": model}, tmp_path / "saved")
        return [name for name, _ in model.named_parameters()]

    def load(parts):
        model = Net(**groups_of(parts))
        with tenon.no_grad():
            for p in model.parameters():
                p.zero_()
        dist.checkpoint.load({"model": model}, tmp_path / "saved")
        return {name: value for name, (value, _) in values_of(model.named_parameters()).items()}

    in_ranks(2, save)
    want = dict(Whole().named())
    for size, parts in ((1, 1), (4, 4), (4, 2)):
        found = {}
        for loaded in in_ranks(size, load, parts):
            for name, value in loaded.items():
                found[name] = value
                np.testing.assert_array_equal(value, want[name].detach().numpy())
        assert set(found) == set(want)


def test_errors():
    def work():
        experts = [nn.Linear(2, 2) for _ in range(4)]
        with pytest.raises(ValueError, match="an expert for each of the 2 ranks at least, got 1"):
            dist.ExpertParallel(experts[:1])
        with pytest.raises(ValueError, match=r"of shape \(2, 2\) in experts 0 and 1"):
            dist.ExpertParallel([experts[0], experts[0]])
        with pytest.raises(ValueError, match="capacity_factor above 0, got 0"):
            dist.ExpertParallel(experts, capacity_factor=0)
        with pytest.raises(ValueError, match="this rank alone in common"):
            dist.ExpertParallel(experts, replicas=dist.world())
        with pytest.raises(ValueError, match="k from 1 to 4, got 5"):
            dist.MoELayer(nn.Linear(2, 4), experts, k=5)
        own = dist.world().split(dist.get_rank())
        with pytest.raises(ValueError, match="1 ranks with different ones"):
            dist.DistributedDataParallel(dist.ExpertParallel(experts, own))
        layer = dist.MoELayer(nn.Linear(2, 3), experts, k=1)
        with pytest.raises(
            ValueError, match=r"logits of shape \(1, 4\) from the gate, got \(1, 3\)"
        ):
            layer(tenon.ones([1, 2]))
        model = nn.ModuleList([layer, layer.experts.get_submodule(str(layer.experts.own[0]))])
        with pytest.raises(ValueError, match=r"that no other module has, got 1\.weight"):
            dist.DistributedDataParallel(model)
        with pytest.raises(RuntimeError, match="expected a call of the layer in training"):
            layer.balance_loss()

    in_ranks(2, work)
