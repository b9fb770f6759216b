# SPDX-License-Identifier: Apache-2.0
"""Pipelines: the numbers of the whole model, the memory and the idle time that the table promises, and failures that are
named instead of waited for."""

import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from ranks import Processes
from tenon import nn, optim
from tenon.distributed.pipelines import SCHEDULES, Action, Schedule, schedule_of
from tenon.distributed.pipelines.drawing import svg_of

RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(3, 9, 6)).astype("f4")  # steps, samples, numbers
TARGETS = RNG.normal(size=(3, 9, 3)).astype("f4")
F, B, W = "FBW"


def squared(output, target):
    return ((output - target) ** 2).mean()


def block(width=8):
    return nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU())


def make_model():
    tenon.manual_seed(1)
    return nn.Sequential(
        {
            "embed": nn.Linear(6, 8),
            "blocks": nn.Sequential(*[block() for _ in range(7)]),
            "head": nn.Linear(8, 3),
        }
    )


def whole(rows=8, parts=4, steps=3):
    """Losses, gradients of the first step and parameters behind the last one, of one process that accumulates."""
    model = make_model()
    optimizer = optim.AdamW(model.parameters(), lr=0.05)
    losses, grads = [], None
    for step in range(steps):
        optimizer.zero_grad()
        total = None
        for part in range(parts):
            own = slice(rows * part // parts, rows * (part + 1) // parts)
            loss = squared(
                model(tenon.tensor(INPUTS[step][:rows][own])),
                tenon.tensor(TARGETS[step][:rows][own]),
            ) * ((own.stop - own.start) / rows)
            loss.backward()
            total = loss.detach() if total is None else total + loss.detach()
        losses.append(total.item())
        grads = grads or {name: p.grad.numpy().copy() for name, p in model.named_parameters()}
        optimizer.step()
    return losses, grads, {name: p.detach().numpy() for name, p in model.named_parameters()}


def train(name, rows=8, parts=4, steps=3, **options):
    pipe = dist.pipeline(make_model(), microbatches=parts, schedule=name, **options)
    optimizer = optim.AdamW(pipe.parameters(), lr=0.05)
    losses, grads = [], None
    for step in range(steps):
        optimizer.zero_grad()
        x, y = tenon.tensor(INPUTS[step][:rows]), tenon.tensor(TARGETS[step][:rows])
        losses.append(pipe.step(x, target=y, loss_fn=squared).item())
        grads = grads or {key: p.grad.numpy().copy() for key, p in pipe.named_parameters()}
        optimizer.step()
    peaks = [pipe.schedule.peak_activations(rank) for rank in range(pipe.schedule.ranks)]
    assert pipe.peak_activations == peaks[dist.get_rank()]
    return losses, grads, {key: p.detach().numpy() for key, p in pipe.named_parameters()}


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("name", SCHEDULES)
def test_numbers_are_those_of_the_whole_model(name, size):
    losses, grads, params = whole()
    with dist.local(size) as ranks:
        told = ranks.run(train, name)
    seen = set()
    for rank_losses, rank_grads, rank_params in told:
        np.testing.assert_allclose(rank_losses, losses, rtol=1e-6)
        assert not seen & rank_grads.keys()
        seen |= rank_grads.keys()
        for key, grad in rank_grads.items():
            np.testing.assert_allclose(grad, grads[key], rtol=1e-5, atol=1e-7, err_msg=key)
            np.testing.assert_allclose(rank_params[key], params[key], rtol=1e-5, atol=1e-6)
    assert seen == grads.keys()


@pytest.mark.parametrize("name", ["GPipe", "1F1B", "interleaved"])
def test_bits_of_accumulation_on_one_rank(name):
    losses, grads, params = whole()
    with dist.local(2) as ranks:
        for rank_losses, rank_grads, rank_params in ranks.run(train, name):
            assert rank_losses == losses
            for key, grad in rank_grads.items():
                assert (grad == grads[key]).all(), key
                assert (rank_params[key] == params[key]).all(), key


@pytest.mark.parametrize("name", ["1F1B", "ZB-H1"])
def test_micro_batches_that_differ_by_a_sample(name):
    losses, grads, _ = whole(rows=9, steps=1)
    exact = make_model().to(tenon.float64)
    x, y = (tenon.tensor(each[0].astype("f8")) for each in (INPUTS, TARGETS))
    squared(exact(x), y).backward()
    with dist.local(2) as ranks:
        for rank_losses, rank_grads, _ in ranks.run(train, name, rows=9, steps=1):
            np.testing.assert_allclose(rank_losses, losses, rtol=1e-6)
            for key, grad in rank_grads.items():
                np.testing.assert_allclose(grad, grads[key], rtol=1e-5, atol=1e-7)
                # Of the whole batch. Backward through eight layers the rounding of float32 grows from 1e-7 of the largest
                # gradient to 6.4e-6 of micro-batches, and 8.4e-6 of one batch in float32 (AVX-512, AVX2, baseline).
                of_batch = exact.get_parameter(key).grad.numpy()
                assert np.abs(grad - of_batch).max() < 1e-5 * np.abs(of_batch).max()


@pytest.mark.parametrize("size, transport", [(2, "tcp"), (4, "shared memory")])
def test_processes(size, transport):
    program = """
        from tenon import nn
        dist.init_process_group(timeout=60)
        tenon.manual_seed(1)
        model = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(8)])
        x = tenon.tensor([[float(i * j % 7) for j in range(8)] for i in range(8)])
        for name in ("1F1B", "interleaved", "ZB-H1"):
            for p in model.parameters():
                p.grad = None
            whole = nn.functional.mse_loss(model(x), x)
            whole.backward()
            expected = {key: p.grad.tolist() for key, p in model.named_parameters()}
            for p in model.parameters():
                p.grad = None
            pipe = dist.pipeline(model, microbatches=8, schedule=name)
            loss = pipe.step(x if rank == 0 else None, target=x if rank == size - 1 else None, loss_fn=nn.functional.mse_loss)
            assert abs(loss.item() - whole.item()) < 1e-5
            import numpy as np
            for key, p in pipe.named_parameters():
                np.testing.assert_allclose(p.grad.numpy(), expected[key], rtol=1e-4, atol=1e-6)
        print("equal")
    """
    with Processes(size, program, TENON_COLLECTIVES_TRANSPORT=transport) as processes:
        for output, errors in processes.finish():
            assert output == "equal\n", errors


def test_split_names_where_stages_begin():
    def work():
        pipe = dist.pipeline(make_model(), microbatches=2, split=["blocks.2"])
        state = pipe.state_dict()
        assert pipe.stages[dist.get_rank()].names[0] == ("embed", "blocks.2.0")[dist.get_rank()]
        other = dist.pipeline(make_model(), microbatches=2, split=["blocks.2"])
        with tenon.no_grad():
            for param in other.parameters():
                param.zero_()
        other.load_state_dict(make_model().state_dict())
        assert all((other.state_dict()[key] == value).all().item() for key, value in state.items())
        for split in (["nowhere"], ["embed"], ["blocks.2", "head"], []):
            with pytest.raises(
                ValueError, match="expected split to name 1 modules, at which stages"
            ):
                dist.pipeline(make_model(), microbatches=2, split=split)
        with pytest.raises(ValueError, match="expected a Sequential of 2 modules at least"):
            dist.pipeline(nn.Linear(2, 2), microbatches=2)
        with pytest.raises(ValueError, match="expected a list of 2 modules"):
            dist.pipeline([nn.Linear(2, 2)], microbatches=2)
        with pytest.raises(ValueError, match="expected a schedule out of GPipe, 1F1B"):
            dist.pipeline(make_model(), microbatches=2, schedule="2F2B")
        with pytest.raises(ValueError, match="that 2 ranks divide, got 3"):
            dist.pipeline(make_model(), microbatches=3, schedule="interleaved")
        with pytest.raises(ValueError, match="expected one stage on each rank, got 2"):
            dist.pipeline(make_model(), microbatches=3, chunks=2)
        return sorted(state)

    with dist.local(2) as ranks:
        first, second = ranks.run(work)
    assert not set(first) & set(second)
    assert sorted(first + second) == sorted(make_model().state_dict())


class Several(nn.Module):
    """Hands on a tensor, a mask of integers, and a tensor that no gradient comes back to."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, x):
        y = self.linear(x)
        return y, (x > 0).to(tenon.int64), x * 2


class Last(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 3)

    def forward(self, y, mask, z):
        return self.linear(y * mask.to(tenon.float32) + z)


@pytest.mark.parametrize("name", ["GPipe", "1F1B", "ZB-H1"])
def test_stages_hand_on_several_tensors(name):
    x, target = tenon.tensor(INPUTS[0][:8]), tenon.tensor(TARGETS[0][:8])

    def stages():
        tenon.manual_seed(3)
        return [Several(), Last()]

    first, last = stages()
    loss = squared(last(*first(x)), target)
    loss.backward()
    expected = [first.linear.weight.grad.numpy(), last.linear.weight.grad.numpy()]

    def work():
        pipe = dist.pipeline(stages(), microbatches=4, schedule=name)
        for _ in range(2):  # the second time without asking for shapes
            for param in pipe.parameters():
                param.grad = None
            told = pipe.step(x, target=target, loss_fn=squared)
        output = pipe.predict(x)
        assert (output is None) == (dist.get_rank() == 0)
        if output is not None:
            np.testing.assert_allclose(output.numpy(), last(*first(x)).detach().numpy(), rtol=1e-5)
        return told.item(), next(iter(pipe.parameters())).grad.numpy()

    with dist.local(2) as ranks:
        for rank, (told, grad) in enumerate(ranks.run(work)):
            assert told == pytest.approx(loss.item(), rel=1e-5)
            np.testing.assert_allclose(grad, expected[rank], rtol=1e-4, atol=1e-6)


class Odd(nn.Module):
    """Uses a module twice, another module's weight, and its own parameter; and changes a result in place."""

    def __init__(self):
        super().__init__()
        self.twice, self.lent = nn.Linear(6, 6), nn.Linear(6, 6)
        self.own = nn.Parameter(tenon.full([6], 0.5))
        self.frozen = nn.Linear(6, 6)
        self.frozen.requires_grad_(False)

    def forward(self, x):
        y = self.twice(nn.functional.gelu(self.twice(x)))
        y.mul_(1.5)
        y = self.frozen(self.lent(y)) + x @ self.lent.weight
        return y * self.own


def test_split_backward_passes_lose_no_gradient():
    x, target = tenon.tensor(INPUTS[0][:8]), tenon.tensor(TARGETS[0][:8])

    def stages():
        tenon.manual_seed(4)
        return [Odd(), nn.Sequential(Odd(), nn.Linear(6, 3))]

    first, last = stages()
    squared(last(first(x)), target).backward()
    expected = [{n: p.grad for n, p in stage.named_parameters()} for stage in (first, last)]

    def work():
        pipe = dist.pipeline(stages(), microbatches=4, schedule="ZB-H1")
        pipe.step(x, target=target, loss_fn=squared)
        return {name.partition(".")[2]: p.grad for name, p in pipe.named_parameters()}

    with dist.local(2) as ranks:
        for rank, grads in enumerate(ranks.run(work)):
            for name, grad in grads.items():
                if expected[rank][name] is None:
                    assert grad is None and "frozen" in name
                    continue
                want = expected[rank][name].numpy()
                np.testing.assert_allclose(grad.numpy(), want, rtol=1e-4, atol=1e-6, err_msg=name)


class Tied(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, x):
        return x @ self.weight


@pytest.mark.parametrize("name", ["1F1B", "ZB-H1"])
def test_tied_over_stages(name):
    x = tenon.tensor(INPUTS[0][:8])

    def model():
        tenon.manual_seed(5)
        weight = nn.Parameter(tenon.randn([6, 6]))
        return nn.Sequential(Tied(weight), nn.Linear(6, 6), nn.Linear(6, 6), Tied(weight))

    one = model()
    squared(one(x), x).backward()
    expected = one[0].weight.grad.numpy()

    def work():
        pipe = dist.pipeline(model(), microbatches=4, schedule=name, split=["2"])
        tied = [p for key, p in pipe.named_parameters() if key in ("0.weight", "3.weight")]
        for _ in range(2):  # gradients add up
            pipe.step(x, target=x, loss_fn=squared)
        return tied[0].grad.numpy()

    with dist.local(2) as ranks:
        first, second = ranks.run(work)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, 2 * expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["F", "B"])
def test_a_stage_that_fails_is_named_within_a_second(kind):
    program = f"""
        from tenon import nn

        class Fails(nn.Module):
            def forward(self, x):
                if calls == 5 and "{kind}" == "F":
                    raise ValueError("no such row")
                if calls == 5:
                    x.register_hook(fail)
                globals()["calls"] += 1
                return x * 1.0

        def fail(grad):
            globals()["began"] = time.time()
            raise ValueError("no such row")

        calls = 0
        dist.init_process_group(timeout=60)
        model = [nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), Fails()), nn.Linear(4, 4)]
        pipe = dist.pipeline(model, microbatches=4)
        x = tenon.ones([8, 4])
        began = time.time()
        try:
            for _ in range(3):
                began = time.time()
                pipe.step(x, target=x, loss_fn=nn.functional.mse_loss)
        except Exception as error:
            print(time.time() - began, type(error).__name__, error)
    """
    with Processes(3, program) as processes:
        told = [output for output, _ in processes.finish()]
        assert told[1].split(None, 1)[1] == "ValueError no such row\n", processes.finish()
        place = f"{kind}1 of stage 1"
        for rank in (0, 2):
            seconds, name, text = told[rank].split(None, 2)
            assert name == "CollectiveAborted"
            assert f"pipeline: rank 1 failed in {place} of step(): ValueError: no such row" in text
            assert float(seconds) < 20  # a loaded machine; the limit of the group is 60


def test_a_killed_stage_is_named():
    program = """
        from tenon import nn

        class Dies(nn.Module):
            def forward(self, x):
                if rank == 1 and store.add("calls", 1) == 6:
                    store.set("killed", str(time.time()).encode())
                    os.kill(os.getpid(), signal.SIGKILL)
                return x

        store = dist.TcpStore("127.0.0.1", int(os.environ["MASTER_PORT"]))
        dist.init_process_group(timeout=60)
        pipe = dist.pipeline([nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), Dies()), nn.Linear(4, 4)], microbatches=4)
        try:
            for _ in range(3):
                pipe.step(tenon.ones([8, 4]), target=tenon.ones([8, 4]), loss_fn=nn.functional.mse_loss)
        except dist.CollectiveError as error:
            print(time.time() - float(store.get("killed", 10)), type(error).__name__, error)
    """
    with Processes(3, program) as processes:
        for output, errors in processes.finish(0, 2):
            seconds, name, text = output.split(None, 2)
            assert name == "PeerFailed" and "rank 1 is gone" in text, errors
            assert float(seconds) < 20


def test_wrong_arguments_of_a_step():
    x = tenon.ones([8, 6])

    def work(wrong):
        pipe = dist.pipeline(make_model(), microbatches=4)
        rank = dist.get_rank()
        with pytest.raises(ValueError, match="expected reduction 'mean' or 'sum', got 'max'"):
            pipe.step(x, target=x, loss_fn=squared, reduction="max")
        with pytest.raises((ValueError, dist.CollectiveAborted), match=wrong["text"]):
            pipe.step(wrong.get("x", x), target=wrong.get("y"), loss_fn=wrong.get("loss", squared))
        return rank

    for wrong in (
        {"x": tenon.ones([3, 6]), "text": "expected a batch of 4 samples at least"},
        {"x": None, "text": "expected tensors with a first axis of samples on rank 0"},
        {"x": tenon.tensor(1.0), "text": "expected tensors with a first axis of samples"},
        {"y": tenon.ones([7, 3]), "text": "expected 8 rows of the target"},
        {"y": tenon.ones([8, 3]), "loss": lambda a, b: a - b, "text": "a tensor of one number"},
    ):
        with dist.local(2, timeout=20.0) as ranks:
            assert ranks.run(work, wrong) == [0, 1]


def test_sums_as_losses():
    x, target = tenon.tensor(INPUTS[0][:8]), tenon.tensor(TARGETS[0][:8])

    def total(output, target):
        return ((output - target) ** 2).sum()

    model = make_model()
    loss = total(model(x), target)
    loss.backward()

    def work():
        pipe = dist.pipeline(make_model(), microbatches=4)
        told = pipe.step(x, target=target, loss_fn=total, reduction="sum")
        return told.item(), {key: p.grad.numpy() for key, p in pipe.named_parameters()}

    with dist.local(2) as ranks:
        for told, grads in ranks.run(work):
            assert told == pytest.approx(loss.item(), rel=1e-5)
            for key, grad in grads.items():
                want = model.get_parameter(key).grad.numpy()
                np.testing.assert_allclose(grad, want, rtol=1e-4, atol=1e-5)


# -- tables


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("microbatches", [8, 24])
def test_bubbles_and_memory_are_those_of_the_papers(ranks, microbatches):
    def bubble(name, **options):
        return schedule_of(name, ranks, microbatches, **options).timeline.bubble

    first = (ranks - 1) / microbatches
    assert bubble("GPipe") == pytest.approx(first) and bubble("1F1B") == pytest.approx(first)
    assert bubble("ZB-H1") == pytest.approx(first / 3)
    if microbatches % ranks == 0:
        for chunks in (1, 2, 3):
            assert bubble("interleaved", chunks=chunks) == pytest.approx(first / chunks)
    for rank in range(ranks):
        assert schedule_of("GPipe", ranks, microbatches).peak_activations(rank) == microbatches
        kept = schedule_of("1F1B", ranks, microbatches).peak_activations(rank)
        assert kept == min(ranks - rank, microbatches)
        assert schedule_of("ZB-H1", ranks, microbatches).peak_activations(rank) <= ranks


def test_tables_that_are_wrong():
    with pytest.raises(ValueError, match="got a table without B1 of stage 0"):
        Schedule("mine", 1, 2, [[(F, 0, 0), (F, 0, 1), (B, 0, 0)]])
    with pytest.raises(ValueError, match="twice with F0 of stage 0"):
        Schedule("mine", 1, 1, [[(F, 0, 0), (F, 0, 0), (B, 0, 0)]])
    with pytest.raises(ValueError, match="got a table with F0 of stage 1"):
        Schedule("mine", 1, 1, [[(F, 0, 0), (F, 1, 0), (B, 0, 0)]])
    with pytest.raises(ValueError, match="expected 2 lists of actions, got 1"):
        Schedule("mine", 2, 1, [[(F, 0, 0), (B, 0, 0)]])
    with pytest.raises(
        ValueError,
        match="rank 0 waits in B0 of stage 0 for B0 of stage 1; rank 1 waits in B0 of stage 1",
    ):
        Schedule("mine", 2, 1, [[(F, 0, 0), (B, 0, 0)], [(B, 1, 0), (F, 1, 0)]])
    mine = Schedule("mine", 2, 1, [[(F, 0, 0), (B, 0, 0)], [(F, 1, 0), (B, 1, 0)]])
    assert mine.messages(0, 1) == [(F, 1, 0)] and mine.messages(1, 0) == [(B, 0, 0)]
    assert mine.messages(0, 0) == [] and mine.table[0][0] == Action(F, 0, 0)
    with dist.local(2) as ranks:
        with pytest.raises(ValueError, match="expected a schedule of 2 ranks and 4 micro-batches"):
            ranks.run(lambda: dist.pipeline(make_model(), microbatches=4, schedule=mine))


def test_pictures(tmp_path):
    def work():
        pipe = dist.pipeline(make_model(), microbatches=4, schedule="1F1B")
        path = tmp_path / f"pipe{dist.get_rank()}.svg"
        text = pipe.draw(path)
        with pytest.raises(ValueError, match=r"name ends in .svg"):
            pipe.draw(tmp_path / "pipe.png")
        return text, path.read_text()

    with dist.local(2) as ranks:
        text, svg = ranks.run(work)[0]
    assert text.splitlines() == [
        "1F1B: 2 ranks, 4 micro-batches, bubble 25.0%, activations kept 2, 1",
        "rank 0  F0 F1 .. .. B0 -- F2 B1 -- F3 B2 -- .. B3 --",
        "rank 1  .. F0 B0 -- F1 B1 -- F2 B2 -- F3 B3 -- .. ..",
    ]
    titles = [
        each.text for each in ElementTree.fromstring(svg).iter() if each.tag.endswith("title")
    ]
    assert sorted(titles) == sorted(
        f"{kind}{i} of stage {stage}" for kind in "FB" for i in range(4) for stage in range(2)
    )


def test_dp_and_pp_together():
    """Two pipelines of two stages, each with half of the batch."""
    losses, grads, _ = whole(rows=8, parts=8, steps=1)

    def work():
        rank = dist.get_rank()
        pipe_group = dist.world().split(rank // 2)
        data_group = dist.world().split(rank % 2)
        pipe = dist.pipeline(make_model(), pipe_group, microbatches=4)
        own = slice(4 * (rank // 2), 4 * (rank // 2) + 4)
        x, y = tenon.tensor(INPUTS[0][own]), tenon.tensor(TARGETS[0][own])
        loss = pipe.step(x, target=y, loss_fn=squared)
        for param in pipe.parameters():
            data_group.all_reduce(param.grad, "mean", param.grad)
        return loss.item(), {key: p.grad.numpy() for key, p in pipe.named_parameters()}

    with dist.local(4) as ranks:
        told = ranks.run(work)
    assert (told[0][0] + told[2][0]) / 2 == pytest.approx(losses[0], rel=1e-5)
    for _, rank_grads in told:
        for key, grad in rank_grads.items():
            np.testing.assert_allclose(grad, grads[key], rtol=1e-4, atol=1e-6)


def test_activations_are_freed(monkeypatch):
    """Memory, and not its count alone: what a stage has kept is gone behind its backward pass."""
    began = time.monotonic()
    sizes = {}

    def work(name):
        tenon.manual_seed(1)
        stages = [nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(2)]
        pipe = dist.pipeline(stages, microbatches=8, schedule=name)
        live, peak = [0], [0]

        def keep(x):
            live[0] += 1
            peak[0] = max(peak[0], live[0])
            return x, lambda: live.__setitem__(0, live[0] - 1)

        class Counted:
            def __init__(self, x):
                self.x, self.done = keep(x)

            def __del__(self):
                self.done()

        with tenon.autograd.saved_tensors_hooks(Counted, lambda kept: kept.x):
            pipe.step(
                tenon.ones([16, 64]), target=tenon.ones([16, 64]), loss_fn=nn.functional.mse_loss
            )
        return peak[0]

    for name in ("GPipe", "1F1B"):
        with dist.local(2) as ranks:
            sizes[name] = ranks.run(work, name)
    for rank in range(2):
        kept = {name: sizes[name][rank] for name in sizes}
        schedule = {name: schedule_of(name, 2, 8).peak_activations(rank) for name in sizes}
        assert kept["GPipe"] * schedule["1F1B"] == kept["1F1B"] * schedule["GPipe"], kept
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    "name, file", [("1F1B", "1f1b"), ("interleaved", "interleaved"), ("ZB-H1", "zb_h1")]
)
def test_pictures_of_the_page(name, file):
    path = Path(__file__).parents[2] / "docs" / "images" / f"pipeline_{file}.svg"
    assert path.read_text(encoding="utf-8") == svg_of(schedule_of(name, 4, 8))
