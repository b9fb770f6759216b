# SPDX-License-Identifier: Apache-2.0
"""Model.fit and its callbacks, beside loops written by hand."""

import csv
import io
import struct
import xml.etree.ElementTree

import numpy as np
import pytest
import tenon
from tenon import data, metrics, nn, optim
from tenon.training import (
    Callback,
    CSVLogger,
    EarlyStopping,
    EventWriter,
    GradientNorm,
    LearningCurve,
    LRScheduler,
    Model,
    ModelCheckpoint,
    TensorBoard,
    Throughput,
)
from tenon.training.curves import draw_curves
from tenon.training.event_writer import crc32c, masked_crc32c

COUNT = 22


def samples():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(COUNT, 5)).astype("float32")
    return tenon.tensor(x), tenon.tensor((x.sum(1) > 0).astype("int64"))


def network(p=0.25):
    tenon.manual_seed(1)
    return nn.Sequential(
        nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(p), nn.Linear(8, 2)
    )


def prepared(lr=0.05, **options):
    model = Model(network(**options))
    optimizer = optim.AdamW(model.network.parameters(), lr=lr)
    model.prepare(optimizer, nn.CrossEntropyLoss(), metrics.Accuracy())
    return model


def loader(batch_size=4):
    return data.DataLoader(data.TensorDataset(*samples()), batch_size, shuffle=True, seed=3)


def weights(model):
    return {name: tensor.numpy().copy() for name, tensor in model.network.state_dict().items()}


def assert_same(one, other):
    assert set(one) == set(other)
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def by_hand(epochs, accumulate=1, clip_norm=None):
    """What fit does, written out."""
    net = network()
    optimizer = optim.AdamW(net.parameters(), lr=0.05)
    batches, rows = loader(), []
    for _ in range(epochs):
        net.train()
        losses, right, waiting = [], 0, 0
        count = len(batches)
        for number, (x, y) in enumerate(batches, 1):
            out = net(x)
            loss = nn.functional.cross_entropy(out, y)
            (loss / accumulate if accumulate > 1 else loss).backward()
            losses.append(loss.item())
            right += (out.argmax(1) == y).sum().item()
            waiting += 1
            if waiting < accumulate and number < count:
                continue
            if waiting < accumulate:
                for parameter in net.parameters():
                    parameter.grad *= accumulate / waiting
            if clip_norm is not None:
                nn.utils.clip_grad_norm_(net.parameters(), clip_norm)
            optimizer.step()
            optimizer.zero_grad()
            waiting = 0
        rows.append({"loss": sum(losses) / len(losses), "accuracy": right / COUNT})
    return {name: tensor.numpy() for name, tensor in net.state_dict().items()}, rows


@pytest.mark.parametrize(
    "options", [{}, {"accumulate": 4}, {"clip_norm": 0.1}, {"accumulate": 3, "clip_norm": 0.5}]
)
def test_fit_is_the_loop_written_out(options):
    model = prepared()
    history = model.fit(loader(), epochs=3, progress=False, **options)
    expected, rows = by_hand(3, **options)
    assert_same(weights(model), expected)
    assert [list(row) for row in history] == [["loss", "accuracy"]] * 3
    for row, by_loop in zip(history, rows, strict=True):
        assert row == pytest.approx(by_loop, rel=1e-6)
    assert model.epoch == 3 and history is model.history
    assert model.step == 3 * -(-6 // options.get("accumulate", 1))


def test_kinds_of_data_and_batches():
    x, y = samples()
    model = prepared(p=0.0)
    model.fit((x, y), (x, y), epochs=1, batch_size=8, progress=False)
    assert set(model.history[0]) == {"loss", "accuracy", "val_loss", "val_accuracy"}
    dataset = data.TensorDataset(x, y)
    batches = [(x[:11], y[:11]), (x[11:], y[11:])]
    values = [model.evaluate(d, batch_size=11) for d in ((x, y), dataset, batches, loader(11))]
    for other in values[1:]:
        assert other == pytest.approx(values[0], rel=1e-5)
    out = model.predict((x, y), batch_size=5)
    assert out.shape == (COUNT, 2) and not out.requires_grad
    np.testing.assert_allclose(model.predict(x.unsqueeze(0)).numpy(), out.numpy(), atol=1e-6)
    assert model.network.training  # as it was

    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter([(x[i], y[i]) for i in range(6)])

    model.fit(Stream(), epochs=2, batch_size=4, progress=False)
    assert model.epoch == 2


def test_several_inputs_and_outputs():
    class Two(nn.Module):
        def __init__(self):
            self.a, self.b = nn.Linear(5, 1), nn.Linear(5, 1)

        def forward(self, x, y):
            return self.a(x) * self.b(y), x.sum(1)

    def loss(product, total, target):
        return ((product.squeeze(-1) - target) ** 2).mean() + 0 * total.sum()

    x, y = samples()
    model = Model(Two(), inputs=2)
    model.prepare(optim.SGD(model.network.parameters(), lr=0.01), loss)
    history = model.fit((x, x * 2, y.cast(tenon.float32)), epochs=2, progress=False)
    assert history[1]["loss"] < history[0]["loss"]
    product, total = model.predict((x, x))
    assert product.shape == (COUNT, 1) and total.shape == (COUNT,)
    with pytest.raises(ValueError, match="at least 2 elements, as many as the network has inputs"):
        model.predict((x,))


def test_what_is_missing_is_said():
    model = Model(network())
    with pytest.raises(RuntimeError, match=r"expected an optimizer and a loss; call prepare"):
        model.fit(loader())
    with pytest.raises(RuntimeError, match=r"expected a loss; call prepare"):
        model.evaluate(loader())
    with pytest.raises(ValueError, match="accumulate of at least 1, got 0"):
        prepared().fit(loader(), accumulate=0)
    with pytest.raises(ValueError, match="at least one input, got 0"):
        Model(network(), inputs=0)
    with pytest.raises(ValueError, match="expected a batch, got none"):
        model.predict([])
    with pytest.raises(KeyError, match=r"expected 'val_loss' among .* need validation data"):
        prepared().fit(loader(), callbacks=[EarlyStopping()], progress=False)


def test_progress_is_shown(capsys):
    model = prepared()
    model.fit(loader(), epochs=2)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[:2] for line in lines] == [
        ["epoch 1/2", "6/6"],
        ["epoch 2/2", "6/6"],
    ]
    for line, row in zip(lines, model.history, strict=True):
        assert f"loss {row['loss']:.4f}" in line


@pytest.mark.parametrize("accumulate", [1, 2])
def test_norms_and_samples_are_measured(capsys, accumulate):
    seen = []

    class Look(Callback):
        def on_gradients(self, model):
            grads = [p.grad.numpy().astype("float64") for p in model.network.parameters()]
            seen.append(np.sqrt(sum((g**2).sum() for g in grads)))

    model = prepared()
    callbacks = [Throughput(), GradientNorm(), Look()]
    rows = model.fit(loader(), epochs=2, callbacks=callbacks, clip_norm=1e-3, accumulate=accumulate)
    steps = len(seen) // 2
    assert steps == -(-6 // accumulate)
    for epoch, row in enumerate(rows):
        norms = seen[epoch * steps : (epoch + 1) * steps]
        np.testing.assert_allclose(row["grad_norm"], np.mean(norms), rtol=1e-5)
        np.testing.assert_allclose(row["max_grad_norm"], np.max(norms), rtol=1e-5)
        assert row["grad_norm"] > 1e-3, "before they are clipped"
        assert 0 < row["samples_per_second"] < 1e9
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"grad_norm {rows[-1]['grad_norm']:.4f}" in line and "samples_per_second" in line
    assert model.batch is None


class Interrupt(Callback):
    """Ends the program, as far as fit can tell, after some steps."""

    runs_last = True

    def __init__(self, at):
        self.at = at

    def on_step_end(self, model):
        if model.step == self.at:
            raise KeyboardInterrupt


def training(folder, *more):
    model = prepared()
    schedule = optim.lr_scheduler.StepLR(model.optimizer, 5, gamma=0.5)
    callbacks = [
        ModelCheckpoint(folder, every_steps=2, keep=2),
        LRScheduler(schedule, by="step"),
        EarlyStopping("loss", patience=50),
        *more,
    ]
    return model, callbacks


@pytest.mark.parametrize("at", [3, 6, 9, 13])
def test_a_training_that_was_interrupted_goes_on(tmp_path, at):
    x, y = samples()
    model, callbacks = training(tmp_path / "whole", Callback())
    expected = model.fit(loader(), (x, y), epochs=3, callbacks=callbacks, progress=False)
    model.optimizer.param_groups[0]["lr"] = 0.0
    again, callbacks = training(tmp_path / "parts", Interrupt(at))
    with pytest.raises(KeyboardInterrupt):
        again.fit(loader(), (x, y), epochs=3, callbacks=callbacks, progress=False)
    tenon.manual_seed(99)  # another process
    last, callbacks = training(tmp_path / "parts", Callback())
    history = last.fit(
        loader(), (x, y), epochs=3, callbacks=callbacks, resume=tmp_path / "parts", progress=False
    )
    assert_same(weights(last), weights(model))
    assert history == expected and last.step == model.step
    assert last.optimizer.param_groups[0]["lr"] == pytest.approx(0.05 * 0.5**3)
    with pytest.raises(ValueError, match="expected the 4 callbacks of the checkpoint, got 0"):
        prepared().fit(loader(), epochs=4, resume=tmp_path / "parts", progress=False)
    fresh = prepared()
    fresh.fit(loader(), epochs=1, resume=tmp_path / "none", progress=False)
    assert fresh.epoch == 1


def test_save_and_load(tmp_path):
    model = prepared()
    model.fit(loader(), epochs=1, progress=False)
    model.save(tmp_path / "all.safetensors")
    model.save(tmp_path / "net.safetensors", training=False)
    assert set(tenon.load(tmp_path / "net.safetensors")) == set(model.network.state_dict())
    for name, epoch in (("all", 1), ("net", 0)):
        other = prepared()
        other.load(tmp_path / f"{name}.safetensors")
        assert_same(weights(other), weights(model))
        assert other.epoch == epoch


def test_early_stopping_restores_the_best():
    class Script(Callback):
        """Puts known values in place of the measured ones."""

        def on_epoch_end(self, model, row):
            row["val_loss"] = [3.0, 2.0, 2.5, float("nan"), 1.0][len(model.history) - 1]
            if row["val_loss"] == 2.0:
                self.best = weights(model)

    script, stop = Script(), EarlyStopping(patience=1, restore_best=True)
    model = prepared()
    model.fit(loader(), epochs=5, callbacks=[script, stop], progress=False)
    assert model.epoch == 4 and stop.waited == 2
    assert_same(weights(model), script.best)
    with pytest.raises(ValueError, match='mode "auto", "min" or "max", got \'up\''):
        EarlyStopping(mode="up")


def test_the_best_network_is_kept(tmp_path):
    values = iter([0.5, 0.9, 0.7])

    class Script(Callback):
        def on_epoch_end(self, model, row):
            row["val_accuracy"] = next(values)
            if row["val_accuracy"] == 0.9:
                self.best = weights(model)

    script, model = Script(), prepared()
    checkpoint = ModelCheckpoint(tmp_path, monitor="val_accuracy", keep=1)
    model.fit(loader(), epochs=3, callbacks=[checkpoint, script], progress=False)
    best = tenon.load(tmp_path / "best.safetensors")
    assert_same({name: tensor.numpy() for name, tensor in best.items()}, script.best)
    assert checkpoint.manager.steps() == [18]


def test_schedules_by_epoch_and_by_value():
    model = prepared()
    plateau = optim.lr_scheduler.ReduceLROnPlateau(model.optimizer, patience=0, factor=0.1)

    class Worse(Callback):
        def on_epoch_end(self, model, row):
            row["score"] = float(len(model.history))

    callbacks = [Worse(), LRScheduler(plateau, monitor="score")]
    model.fit(loader(), epochs=2, callbacks=callbacks, progress=False)
    assert model.optimizer.param_groups[0]["lr"] == pytest.approx(0.005)
    with pytest.raises(ValueError, match='by="epoch" or "step", got \'batch\''):
        LRScheduler(plateau, by="batch")
    with pytest.raises(ValueError, match="leave out by='step'"):
        LRScheduler(plateau, by="step", monitor="loss")


# -- logs and pictures -----------------------------------------------------------------------------


def read_events(path):
    """(step, tag, value) of a file, with its checksums compared."""
    content, events = io.BytesIO(path.read_bytes()), []
    while head := content.read(12):
        length, crc = struct.unpack("<QI", head)
        assert crc == masked_crc32c(head[:8])
        body = content.read(length)
        assert struct.unpack("<I", content.read(4))[0] == masked_crc32c(body)
        events.append(dict(fields(body)))
    assert events[0][3] == b"brain.Event:2" and all(event[1] > 1e9 for event in events)
    result = []
    for event in events[1:]:
        value = dict(fields(dict(fields(event[5]))[1]))
        result.append((event.get(2), value[1].decode(), value[2]))
    return result


def fields(message):
    """Numbers and contents of a protocol buffer's fields."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        kind = key & 7
        if kind == 0:
            content = varint()
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            content = message[at : at + size]
            at += size
            if kind != 2:
                (content,) = struct.unpack("<d" if kind == 1 else "<f", content)
        yield key >> 3, content


def test_event_files(tmp_path):
    assert crc32c(b"123456789") == 0xE3069283 and crc32c(b"") == 0  # the check value of RFC 3720
    assert crc32c(bytes(32)) == 0x8A9136AA
    with EventWriter(tmp_path / "logs") as writer:
        writer.add_scalar("loss", 0.5, 0)
        writer.add_scalar("größe", -2.0, 300)
        writer.add_scalar("far", float("inf"), 2**40)
    (path,) = (tmp_path / "logs").glob("events.out.tfevents.*")
    assert read_events(path) == [
        (0, "loss", 0.5),
        (300, "größe", -2.0),
        (2**40, "far", float("inf")),
    ]


def test_a_real_reader_of_event_files(tmp_path):
    accumulators = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="needs tensorboard, which is no dependency of Tenon",
    )
    with EventWriter(tmp_path) as writer:
        for step in range(5):
            writer.add_scalar("loss", 1 / (step + 1), step)
    reader = accumulators.EventAccumulator(str(tmp_path))
    reader.Reload()
    assert [event.step for event in reader.Scalars("loss")] == list(range(5))


def test_logs_of_a_training(tmp_path):
    model, (x, y) = prepared(), samples()
    callbacks = [
        CSVLogger(tmp_path / "log.csv"),
        TensorBoard(tmp_path / "events", every_steps=4),
        LearningCurve(tmp_path / "curve.svg"),
    ]
    model.fit(loader(), (x, y), epochs=2, callbacks=callbacks, progress=False)
    with open(tmp_path / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["1", "2"]
    assert float(rows[1]["val_loss"]) == model.history[1]["val_loss"]
    (path,) = (tmp_path / "events").iterdir()
    events = read_events(path)
    assert [(step, tag) for step, tag, _ in events if tag.startswith("step/")] == [
        (step, tag) for step in (4, 8, 12) for tag in ("step/loss", "step/lr/0")
    ]
    by_epoch = {(step, tag): value for step, tag, value in events if tag.startswith("epoch/")}
    assert by_epoch[2, "epoch/val_accuracy"] == pytest.approx(model.history[1]["val_accuracy"])
    assert len(by_epoch) == 8
    picture = (tmp_path / "curve.svg").read_text()
    root = xml.etree.ElementTree.fromstring(picture)
    lines = [element for element in root if element.tag.endswith("polyline")]
    assert len(lines) == 4  # loss and accuracy, of training and validation
    assert all(len(line.attrib["points"].split()) == 2 for line in lines)


@pytest.mark.parametrize(
    "history",
    [
        [],
        [{"loss": 1.0}],
        [{"loss": 0.0}] * 3,
        [{"loss": float("nan")}, {"loss": 2.0, "<name>": 1e9}, {"text": "no number"}],
        [{"loss": 1e-8, "val_loss": 1e12}, {"loss": float("inf"), "val_loss": -5}],
        [{"loss": float(i)} for i in range(200)],
    ],
)
def test_curves_of_any_history(history):
    root = xml.etree.ElementTree.fromstring(draw_curves(history))
    height = float(root.attrib["height"])
    for element in root.iter():
        for name in ("x", "y", "cx", "cy", "y1", "y2"):
            if name in element.attrib:
                assert 0 <= float(element.attrib[name]) <= max(height, 560)
