# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of several ranks: any layout is loaded into any other, a kill leaves the old or the new, and files that are
damaged are named."""

import json
import os
import random
import textwrap

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from ranks import Processes
from tenon import nn, optim
from tenon.distributed import checkpoint
from tenon.distributed.checkpoint import Piece
from tenon.distributed.checkpoint.boxes import Box, overlap
from tenon.io import safetensors


def in_ranks(size, work, *args):
    with dist.local(size, timeout=30.0) as ranks:
        return ranks.run(work, *args)


# -- parts of tensors


def cut_of(rng, shape, ranks):
    """The pieces of each rank: a grid along random axes, dealt to the ranks, uneven and empty ones among them."""
    bounds = []
    for size in shape:
        inner = sorted(rng.randint(0, size) for _ in range(rng.choice([0, 0, 1, 2])))
        bounds.append([0, *inner, size])
    boxes = [((), ())]
    for axis in bounds:
        boxes = [
            ((*offset, a), (*size, b - a))
            for offset, size in boxes
            for a, b in zip(axis, axis[1:], strict=False)
        ]
    owners = [[] for _ in range(ranks)]
    for box in boxes:
        owners[rng.randrange(ranks)].append(box)
    return owners


@pytest.mark.parametrize("seed", range(12))
def test_any_layout_into_any_other(tmp_path, seed):
    rng = random.Random(seed)
    dtype = rng.choice("bool int8 int64 float16 bfloat16 float32 float64 complex64".split())
    shapes = [tuple(rng.randint(0, 6) for _ in range(rng.randint(0, 3))) for _ in range(4)]
    arrays = [np.random.default_rng(seed).integers(0, 2, size=shape) for shape in shapes]
    wholes = [tenon.tensor(np.asarray(array)).to(dtype) for array in arrays]
    before, after = rng.randint(1, 4), rng.randint(1, 4)
    folder = tmp_path / "saved"

    def pieces_of(cuts, of):
        rank = dist.get_rank()
        state = {}
        for i, cut in enumerate(cuts):
            # One name has one piece on a rank: others go under names of their own below.
            if cut[rank]:
                offset, size = cut[rank][0]
                state[f"t{i}"] = Piece(of(i, offset, size), shapes[i], offset)
        return state

    def part(i, offset, size):
        slices = tuple(slice(o, o + n) for o, n in zip(offset, size, strict=True))
        return wholes[i][slices] if slices else wholes[i]

    def rows(shape, ranks):
        """Of each rank: rows * r // n."""
        if not shape:
            return [[((), ())]] * ranks
        return [
            [
                (
                    (shape[0] * r // ranks, *[0] * (len(shape) - 1)),
                    (shape[0] * (r + 1) // ranks - shape[0] * r // ranks, *shape[1:]),
                )
            ]
            for r in range(ranks)
        ]

    checkpoint_cuts = [rows(shape, before) for shape in shapes]
    in_ranks(before, lambda: checkpoint.save(pieces_of(checkpoint_cuts, part), folder))
    wanted = [cut_of(rng, shape, after) for shape in shapes]

    def load():
        state = pieces_of(wanted, lambda i, o, n: tenon.zeros(list(n)).to(dtype))
        checkpoint.load(state, folder, strict=False)
        for name, piece in state.items():
            expected = part(int(name[1:]), piece.offset, tuple(piece.tensor.shape))
            assert piece.tensor.to("complex64").tolist() == expected.to("complex64").tolist()

    in_ranks(after, load)


def test_boxes():
    assert overlap([Box((0, 0), (2, 2)), Box((2, 0), (1, 2)), Box((0, 2), (2, 1))]) is None
    assert overlap([Box((0, 0), (2, 2)), Box((1, 1), (2, 2))])
    assert overlap([Box((), ()), Box((), ())])
    assert overlap([Box((0,), (0,)), Box((0,), (3,))]) is None
    with pytest.raises(
        ValueError, match=r"expected a part of a tensor of shape \(3,\), got \(2,\)"
    ):
        Piece(tenon.ones([2]), (3,), (2,))
    with pytest.raises(ValueError, match="expected as many axes"):
        Piece(tenon.ones([2]), (3, 3), (0,))


def test_pieces_have_to_make_a_whole(tmp_path):
    def work(pieces):
        start, size = pieces[dist.get_rank()]
        checkpoint.save({"x": Piece(tenon.ones([size]), (6,), (start,))}, tmp_path / "c")

    with pytest.raises(ValueError, match=r"'x': pieces leave out 1 of 6 elements of shape \(6,\)"):
        in_ranks(2, work, [(0, 3), (3, 2)])
    with pytest.raises(
        ValueError, match=r"'x': pieces \[4\] from \[0\] on and \[3\] from \[3\] on"
    ):
        in_ranks(2, work, [(0, 4), (3, 3)])
    in_ranks(2, work, [(0, 6), (0, 6)])  # replicas
    assert not [name for name in os.listdir(tmp_path / "c") if name.startswith("failed")]


# -- models and optimizers

INPUTS = np.random.default_rng(0).normal(size=(24, 6)).astype("f4")
LAYERS = ["plain", "ddp", "zero1", "zero2", "pipeline"]


def make_model():
    tenon.manual_seed(1)
    return nn.Sequential(
        nn.Linear(6, 7), nn.GELU(), nn.Linear(7, 5), nn.BatchNorm1d(5), nn.Linear(5, 1)
    )


class Run:
    """One rank of a run under one layout."""

    def __init__(self, layout, fresh=False):
        self.layout, self.model = layout, make_model()
        if fresh:
            with tenon.no_grad():
                for param in self.model.parameters():
                    param.fill_(9.0)
        self.wrapped = self.model
        options = {"lr": 0.05, "betas": (0.8, 0.9)}
        if layout in ("ddp", "zero1"):
            self.wrapped = dist.DistributedDataParallel(self.model)
        if layout == "pipeline":
            self.model = self.wrapped = dist.pipeline(make_model(), microbatches=4)
            if fresh:
                with tenon.no_grad():
                    for param in self.model.parameters():
                        param.fill_(9.0)
        if layout in ("zero1", "zero2"):
            self.optimizer = dist.ZeroRedundancyOptimizer(
                self.model.parameters(), optim.AdamW, stage=int(layout[-1]), **options
            )
        else:
            self.optimizer = optim.AdamW(self.model.parameters(), **options)
        self.model.eval()  # statistics of a batch depend on how it is cut

    def step(self, number):
        x = tenon.tensor(INPUTS * (1 + number))
        self.optimizer.zero_grad()
        if self.layout == "pipeline":
            self.model.step(x, target=x[:, :1], loss_fn=nn.functional.mse_loss)
        else:
            # All ranks have the whole batch: their mean is its gradient.
            nn.functional.mse_loss(self.wrapped(x), x[:, :1]).backward()
        self.optimizer.step()

    def state(self):
        return {"model": self.wrapped, "optimizer": self.optimizer, "epoch": 0, "seen": (0, "")}

    def numbers(self):
        state = self.model.state_dict()
        return {name: value.detach().numpy().copy() for name, value in state.items()}


def text_of(optimizer):
    """Of its state, in whatever order that was made."""
    state = optimizer.state_dict()
    return str([sorted(each.items()) for _, each in sorted(state["state"].items())]) + str(
        state["param_groups"]
    )


def expected_after(steps):
    run = Run("plain")
    for number in range(steps):
        run.step(number)
    return run.numbers()


@pytest.mark.parametrize("after", LAYERS)
@pytest.mark.parametrize("before", LAYERS)
def test_layouts_of_training(tmp_path, before, after):
    """Two steps under one layout, two under another, on another number of ranks."""

    def first():
        run = Run(before)
        for number in range(2):
            run.step(number)
        state = {**run.state(), "epoch": 7, "seen": (3, "x")}
        checkpoint.save(state, tmp_path / "c")

    def second():
        run = Run(after, fresh=True)
        state = checkpoint.load(run.state(), tmp_path / "c")
        assert state["epoch"] == 7 and state["seen"] == (3, "x")
        assert state["optimizer"] is run.optimizer
        for number in range(2, 4):
            run.step(number)
        return run.numbers()

    in_ranks(1 if before == "plain" else 2, first)
    told = in_ranks(1 if after == "plain" else 3, second)
    want = expected_after(4)
    seen = {}
    for numbers in told:
        seen |= numbers
        for name, value in numbers.items():
            np.testing.assert_allclose(value, want[name], rtol=2e-4, atol=2e-5, err_msg=name)
    assert seen.keys() == want.keys()


def test_optimizer_state_other_n(tmp_path):
    """The state of ZeRO, from ranks to other ranks and back, bit for bit."""

    def work(size, source, target):
        run = Run("zero2", fresh=source is not None)
        if source is None:
            for number in range(2):
                run.step(number)
        else:
            checkpoint.load(run.state(), tmp_path / source)
        checkpoint.save(run.state(), tmp_path / target)
        return text_of(run.optimizer), {k: v.tobytes() for k, v in run.numbers().items()}

    told = []
    source = None
    for size in (4, 3, 1, 2):
        told += in_ranks(size, work, size, source, str(size))
        source = str(size)
    assert all(each == told[0] for each in told)
    files = [name for name in os.listdir(tmp_path / "4") if name.startswith("pieces")]
    sizes = [os.path.getsize(tmp_path / "4" / name) for name in files]
    assert len(files) == 4 and max(sizes) < 2 * min(sizes)  # all of them write


def test_half_precision_with_master_weights(tmp_path):
    def work(source):
        tenon.manual_seed(2)
        model = nn.Linear(6, 3).to(tenon.bfloat16)
        optimizer = optim.AdamW(model.parameters(), lr=0.1, multi_precision=True)
        state = {"model": model, "optimizer": optimizer}
        if source:
            checkpoint.load(state, source)
        else:
            model(tenon.tensor(INPUTS).to(tenon.bfloat16)).sum().backward()
            optimizer.step()
            checkpoint.save(state, tmp_path / "c")
        return text_of(optimizer), model.weight.tolist()

    saved = in_ranks(2, work, None)
    assert in_ranks(1, work, tmp_path / "c")[0] == saved[0]


def test_what_does_not_fit_is_named(tmp_path):
    run = Run("plain")
    run.step(0)
    checkpoint.save(run.state(), tmp_path / "c")
    before = run.numbers()
    for state, text in (
        ({"model": nn.Linear(6, 7)}, r"missing: model.weight \(expected shape \(7, 6\)\)"),
        ({"model": run.model}, "left over: epoch"),
        ({**run.state(), "lr": 1.0}, "missing: lr"),
        (
            {**run.state(), "model": make_model().to(tenon.float64), "optimizer": {}},
            "model.0.weight: expected float64, got float32; load into",
        ),
        (
            {**run.state(), "model": nn.Sequential(nn.Linear(3, 3)), "optimizer": {}},
            r"expected shape \(3, 3\)",
        ),
    ):
        with pytest.raises(ValueError, match=text):
            checkpoint.load(state, tmp_path / "c")
        assert all((run.numbers()[name] == value).all() for name, value in before.items())
    checkpoint.load({"model": run.model}, tmp_path / "c", strict=False)
    with pytest.raises(
        FileNotFoundError, match="expected a checkpoint in .*nowhere, found no manifest"
    ):
        checkpoint.load(run.state(), tmp_path / "nowhere")
    with pytest.raises(ValueError, match="expected the model beside its optimizer"):
        checkpoint.save({"optimizer": run.optimizer}, tmp_path / "c")
    with pytest.raises(TypeError, match="got object at 'x'"):
        checkpoint.save({"x": object()}, tmp_path / "c")
    with pytest.raises(ValueError, match="expected different names, got two of 'a.b'"):
        checkpoint.save({"a.b": tenon.ones([1]), "a": {"b": tenon.ones([1])}}, tmp_path / "c")
    with pytest.raises(
        OSError, match="stays as it was; rank 0: ValueError: safetensors cannot hold"
    ):
        checkpoint.save({"x": tenon.ones([1], dtype=tenon.complex128)}, tmp_path / "c")
    assert checkpoint.load(run.state(), tmp_path / "c")["epoch"] == 0


def test_ranks_that_differ(tmp_path):
    def values():
        checkpoint.save({"epoch": dist.get_rank()}, tmp_path / "c")

    def shapes():
        checkpoint.save({"x": tenon.ones([2 + dist.get_rank()])}, tmp_path / "c")

    def one_fails():
        checkpoint.save({"x": object() if dist.get_rank() == 1 else 1}, tmp_path / "c")

    def one_cannot_load():
        checkpoint.save({"x": tenon.ones([2])}, tmp_path / "c")
        state = {"x": tenon.ones([2]), **({"y": 1} if dist.get_rank() == 1 else {})}
        for _ in range(2):
            with pytest.raises(ValueError, match="missing: y"):
                checkpoint.load(state, tmp_path / "c")

    with pytest.raises(
        ValueError, match="expected 'epoch' to be the same on all ranks, got 1 on rank 1"
    ):
        in_ranks(2, values)
    with pytest.raises(ValueError, match=r"float32 \(3,\) on rank 1 and float32 \(2,\) on rank 0"):
        in_ranks(2, shapes)
    with pytest.raises(
        ValueError, match="rank 1 could not begin to save: TypeError: checkpoint: expected"
    ):
        in_ranks(2, one_fails)
    in_ranks(2, one_cannot_load)


def test_schedulers_and_nested_values(tmp_path):
    model = make_model()
    optimizer = optim.AdamW(model.parameters(), lr=0.5)
    schedule = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    for _ in range(3):
        optimizer.step()
        schedule.step()
    values = {"a": [1, (2.5, None, True)], 3: float("inf"), "text": "ü"}
    state = {"model": model, "optimizer": optimizer, "schedule": schedule, "values": values}
    checkpoint.save(state, tmp_path / "c")
    other = optim.AdamW(make_model().parameters(), lr=0.5)
    again = {
        "model": model,
        "optimizer": optimizer,
        "schedule": optim.lr_scheduler.StepLR(other, 1, 0.5),
        "values": {},
    }
    loaded = checkpoint.load(again, tmp_path / "c")
    assert loaded["values"] == values
    assert again["schedule"].state_dict() == schedule.state_dict()


# -- whole or not at all


def test_asynchronous(tmp_path):
    def work():
        run = Run("zero2")
        run.step(0)
        checkpoint.save(run.state(), tmp_path / "now")
        pending = checkpoint.save(run.state(), tmp_path / "later", asynchronous=True)
        run.step(1)  # what is saved is a copy
        pending.wait()
        assert pending.is_done()
        checkpoint.save(run.state(), tmp_path / "third", asynchronous=True)
        checkpoint.save(run.state(), tmp_path / "fourth", asynchronous=True).wait()
        run = Run("zero2", fresh=True)
        told = []
        for name in ("now", "later", "third", "fourth"):
            checkpoint.load(run.state(), tmp_path / name)
            told.append((text_of(run.optimizer), str(run.numbers())))
        assert told[0] == told[1] != told[2] == told[3]

    in_ranks(3, work)


def test_errors_of_asynchronous_saves(tmp_path):
    (tmp_path / "file").write_text("")

    def work():
        x = {"x": tenon.ones([4])}
        checkpoint.save(x, tmp_path / "file" / "c", asynchronous=True)
        with pytest.raises(OSError, match="Not a directory"):
            checkpoint.save(x, tmp_path / "d")
        checkpoint.save(x, tmp_path / "d")  # it was told once
        checkpoint.load(x, tmp_path / "d")

    in_ranks(1, work)


def test_a_rank_that_cannot_write_leaves_the_old_one(tmp_path, monkeypatch):
    real = safetensors.write

    def work():
        x = tenon.full([4], float(dist.get_rank()))
        state = {"x": Piece(x, (8,), (4 * dist.get_rank(),))}
        checkpoint.save(state, tmp_path / "c")
        x.fill_(7.0)
        monkeypatch.setattr(safetensors, "write", fail)
        for asynchronous in (False, True):
            with pytest.raises(OSError, match="stays as it was; rank 1: OSError: .*no space"):
                pending = checkpoint.save(state, tmp_path / "c", asynchronous=asynchronous)
                if pending is not None:
                    pending.wait()
        dist.barrier()
        monkeypatch.setattr(safetensors, "write", real)
        checkpoint.load(state, tmp_path / "c")
        assert x.tolist() == [float(dist.get_rank())] * 4
        dist.barrier()
        checkpoint.save(state, tmp_path / "c")
        return sorted(os.listdir(tmp_path / "c"))

    def fail(path, *args):
        if "00001.safe" in str(path):
            raise OSError("no space left on device")
        real(path, *args)

    names = in_ranks(2, work)[0]
    assert len(names) == 3 and names[0] == "manifest.json", names


def test_damaged_files_are_named(tmp_path):
    def save():
        x = Piece(tenon.full([500], float(dist.get_rank())), (1000,), (500 * dist.get_rank(),))
        checkpoint.save({"x": x, "n": 3}, tmp_path / "c")

    in_ranks(2, save)
    rng = random.Random(0)
    names = sorted(os.listdir(tmp_path / "c"))
    good = {name: (tmp_path / "c" / name).read_bytes() for name in names}
    state = {"x": tenon.zeros([1000]), "n": 0}
    for name in names:
        for damage in range(60):
            data = bytearray(good[name])
            if damage % 3 == 0:
                del data[rng.randrange(len(data)) :]
            elif damage % 3 == 1:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            else:
                at = rng.randrange(len(data))
                data[at : at + 20] = rng.randbytes(20)
            (tmp_path / "c" / name).write_bytes(bytes(data))
            if bytes(data) == good[name]:
                continue
            try:
                checkpoint.load(state, tmp_path / "c")
            except safetensors.FormatError as error:
                assert name in str(error)
            except ValueError as error:  # a name or number of the state, in the manifest
                assert name == "manifest.json" and "does not fit" in str(error)
            else:
                # White space of the manifest, or of a header, holds nothing.
                assert state["x"].tolist() == [0.0] * 500 + [1.0] * 500
        (tmp_path / "c" / name).write_bytes(good[name])
    os.unlink(tmp_path / "c" / names[1])
    with pytest.raises(
        safetensors.FormatError, match="the file is missing, which manifest.json names"
    ):
        checkpoint.load(state, tmp_path / "c")


@pytest.mark.parametrize(
    "change, text",
    [
        (lambda m: m.update(format="x"), "expected a manifest of tenon.distributed.checkpoint"),
        (lambda m: m.update(version=9), "expected version 1, got 9"),
        (lambda m: m.pop("values"), "a part is missing or of the wrong type"),
        (lambda m: piece(m).update(file="../../etc/passwd"), "is no name of a file of pieces"),
        (lambda m: piece(m).update(offset=[-1]), "expected a list of sizes, got"),
        (lambda m: piece(m).update(offset=[900]), "lies outside of the shape"),
        (lambda m: piece(m).update(size=[10]), "pieces leave out"),
        (lambda m: m["tensors"]["x"].update(pieces=[piece(m)] * 2), "overlap"),
        (lambda m: m["tensors"]["x"].update(shape=[1, 1000]), "has other axes than the tensor"),
        (lambda m: m["tensors"]["x"].update(dtype="float64"), "expected float32, got float64"),
    ],
)
def test_manifests_that_are_wrong(tmp_path, change, text, monkeypatch):
    from tenon.distributed.checkpoint import manifest

    checkpoint.save({"x": tenon.zeros([1000])}, tmp_path / "c")
    path = tmp_path / "c" / "manifest.json"
    content = json.loads(path.read_text())
    content.pop("crc32")
    change(content)
    path.write_text(json.dumps({**content, "crc32": manifest._digest(content)}))
    with pytest.raises(ValueError, match=text):
        checkpoint.load({"x": tenon.zeros([1000])}, tmp_path / "c")


def piece(manifest):
    return manifest["tensors"]["x"]["pieces"][0]


def test_steps(tmp_path):
    def work():
        run = Run("zero1")
        steps = checkpoint.Steps(tmp_path / "run", keep=2)
        assert steps.load(run.state())[0] == 0
        for number in range(4):
            run.step(number)
            steps.save(number + 1, {**run.state(), "epoch": number}, asynchronous=number % 2 == 1)
        steps.wait()
        told = str(run.numbers())
        dist.barrier()
        assert steps.steps() == [3, 4]
        run = Run("zero1", fresh=True)
        step, state = steps.load(run.state())
        assert (step, state["epoch"]) == (4, 3) and str(run.numbers()) == told
        step, state = steps.load(run.state(), 3)
        assert (step, state["epoch"]) == (3, 2)
        return steps.path(4)

    path = in_ranks(2, work)[0]
    victim = next(name for name in sorted(os.listdir(path)) if name.startswith("pieces"))
    with open(os.path.join(path, victim), "r+b") as file:
        file.seek(-1, 2)
        file.write(b"\xff")

    def after():
        run = Run("zero1", fresh=True)
        with pytest.warns(RuntimeWarning, match="left out a checkpoint: .*step-00000004"):
            return checkpoint.Steps(tmp_path / "run").load(run.state())[0]

    assert in_ranks(1, after) == [3]
    with pytest.raises(ValueError, match="expected keep of at least 1 or None, got 0"):
        checkpoint.Steps(tmp_path, keep=0)


def test_other_programs_read_the_files(tmp_path):
    checkpoint.save({"x": tenon.arange(6).reshape([2, 3])}, tmp_path / "c")
    content = json.loads((tmp_path / "c" / "manifest.json").read_text())
    stored = content["tensors"]["x"]["pieces"][0]
    tensors = tenon.load(tmp_path / "c" / stored["file"])
    assert tensors[stored["key"]].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_rank_that_dies_while_others_save(tmp_path):
    program = f"""
        from tenon.distributed import checkpoint
        dist.init_process_group(timeout=30)
        state = {{"x": checkpoint.Piece(tenon.ones([4]), (12,), (4 * rank,))}}
        checkpoint.save(state, {str(tmp_path / "c")!r})
        if rank == 1:
            from tenon.io import safetensors
            safetensors.write = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        try:
            checkpoint.save(state, {str(tmp_path / "c")!r}, asynchronous=True).wait()
        except OSError as error:
            print(error)
    """
    with Processes(3, textwrap.dedent(program)) as processes:
        for output, errors in processes.finish(0, 2):
            assert "stays as it was: ranks [1] are gone" in output, errors
    x = tenon.zeros([12])
    checkpoint.load({"x": x}, tmp_path / "c")
    assert x.tolist() == [1.0] * 12


def test_tensors_that_ranks_have_differently_are_told(tmp_path):
    """Such as state_dict() of a model whose rows are on different ranks: one rank's would be saved as all of them."""

    def work():
        model = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 2))
        for layer in model:
            dist.fully_shard(layer)
        optimizer = optim.AdamW(model.parameters(), lr=0.1)
        model(tenon.ones([2, 4])).sum().backward()
        optimizer.step()
        for state in ({"model": model.state_dict()}, {"optimizer": optimizer.state_dict()}):
            with pytest.raises(ValueError, match="to be the same on all ranks, got other numbers"):
                checkpoint.save(state, tmp_path / "a")
        with pytest.raises(
            ValueError, match="'x' to be the same .* give the model or the optimizer"
        ):
            checkpoint.save({"x": tenon.full([3], float(dist.get_rank()))}, tmp_path / "a")
        checkpoint.save({"x": tenon.ones([3])}, tmp_path / "a")

    with dist.local(2, timeout=20.0) as ranks:
        ranks.run(work)
