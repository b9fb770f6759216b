# SPDX-License-Identifier: Apache-2.0
"""Two devices in one thread: replicas of a model that average their gradients by copies from one to the other."""

import pytest

pytestmark = pytest.mark.parametrize("kind", ["ascend", "cuda", "hip"], indirect=True)


def test_replicas_on_two_devices_train_as_one_model_on_the_cpu(run, kind):
    code = """
        import numpy as np
        from tenon import nn, optim

        rng = np.random.default_rng(0)
        images = rng.standard_normal((8, 2, 8, 8)).astype("float32")
        labels = rng.integers(0, 3, 8)

        def model():
            tenon.manual_seed(1)
            return nn.Sequential(
                nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                nn.Flatten(), nn.LayerNorm(64), nn.Linear(64, 3),
            )

        def train(devices, steps=4):
            replicas = [model().to(device) for device in devices]
            optimizers = [optim.AdamW(each.parameters(), 0.01) for each in replicas]
            share = len(images) // len(devices)
            losses = []
            for _ in range(steps):
                for i, (replica, device) in enumerate(zip(replicas, devices)):
                    rows = slice(i * share, (i + 1) * share)
                    x, y = tenon.tensor(images[rows]).to(device), tenon.tensor(labels[rows]).to(device)
                    loss = tenon.cross_entropy(replica(x), y)
                    loss.backward()
                    losses.append(loss)
                # The devices still work on the gradients when these are copied.
                for same in zip(*(each.parameters() for each in replicas)):
                    total = same[0].grad
                    for other in same[1:]:
                        total = total + other.grad.to(devices[0])
                    for each, device in zip(same, devices):
                        each.grad.copy_((total / len(devices)).to(device))
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()
            for replica, device in zip(replicas, devices):
                assert all(p.device == tenon.device(device) for p in replica.parameters())
            steps = np.array([loss.item() for loss in losses]).reshape(steps, len(devices)).mean(1)
            return steps, [[p.detach().cpu().numpy() for p in each.parameters()] for each in replicas]

        expected_losses, (expected,) = train(["cpu"])
        losses, replicas = train([KIND + ":0", KIND + ":1"])
        # Each replica adds up half of the batch: float32 rounds in another order.
        np.testing.assert_allclose(losses, expected_losses, rtol=1e-4)
        for first, second, one in zip(*replicas, expected):
            np.testing.assert_array_equal(first, second)
            # AdamW divides by roots of small squares: float32's rounding, some hundred times over.
            np.testing.assert_allclose(first, one, rtol=1e-3, atol=1e-4)
    """
    result = run(
        code,
        SIMULATED_DEVICES="2",
        SIMULATED_ASCEND_DEVICES="2",
        SIMULATED_DELAY_US="100",
        SIMULATED_SEED="5",
        SIMULATED_PEERS="1",
    )
    assert result.returncode == 0, result.stderr


def test_operators_on_the_second_device_leave_the_first_one_current(run, kind):
    """Each device has its own streams, handles of libraries and programs; work goes back and forth between them."""
    code = """
        import numpy as np
        rng = np.random.default_rng(0)
        a = rng.standard_normal((5, 7)).astype("float32")
        b = rng.standard_normal((7, 3)).astype("float32")
        for round in range(3):
            parts = []
            for device in (KIND + ":1", KIND + ":0", KIND + ":1"):
                x, y = tenon.tensor(a).to(device), tenon.tensor(b).to(device)
                with tenon.Stream(device) as stream:
                    z = tenon.softmax(x @ y, 1).sum(0)
                stream.synchronize()
                assert str(z.device) == device
                parts.append(z)
            for part in parts[1:]:
                np.testing.assert_array_equal(part.cpu().numpy(), parts[0].cpu().numpy())
        e = np.exp(a @ b - (a @ b).max(1, keepdims=True))
        # NumPy's exponentials and sums round in another order.
        np.testing.assert_allclose(parts[0].cpu().numpy(), (e / e.sum(1, keepdims=True)).sum(0), rtol=1e-5)
        try:
            tenon.ones([2], device=KIND + ":0") + tenon.ones([2], device=KIND + ":1")
        except (ValueError, RuntimeError) as error:
            print(error)
    """
    result = run(
        code, SIMULATED_DEVICES="2", SIMULATED_ASCEND_DEVICES="2", SIMULATED_DELAY_US="100"
    )
    assert result.returncode == 0, result.stderr
    assert f"{kind}:0" in result.stdout and f"{kind}:1" in result.stdout
