# SPDX-License-Identifier: Apache-2.0
"""Other kinds of devices as a device of PyTorch: OpenCL, and a plugin in a process of its own. Each in a process, as one kind of
device is PyTorch's in one."""

import os
import subprocess
import sys

import pytest
from torch_device_setup import DEVICE, library

PROGRAM = """
import warnings
import tenon, torch
warnings.simplefilter("ignore")
{first}
try:
    tenon.device({kind!r})
except tenon.DeviceError as error:
    print("absent:", error)
    raise SystemExit
tenon.torch.device.register({kind!r})
torch.manual_seed(0)
nn = torch.nn
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3))
state = {{name: value.clone() for name, value in net.state_dict().items()}}
x, target = torch.randn(6, 1, 8, 8), torch.tensor([0, 1, 2, 0, 1, 2])
found = {{}}
for device in ("cpu", {kind!r}):
    net.load_state_dict(state)
    net.to(device)
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x.to(device)), target.to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    found[device] = torch.tensor(losses)
    assert next(net.parameters()).device.type == device
torch.testing.assert_close(found[{kind!r}], found["cpu"], rtol=1e-4, atol=1e-5)
assert losses[-1] < losses[0]
other = (x.to({kind!r}) * 2.0 - 1).transpose(2, 3)
torch.testing.assert_close(other.cpu(), (x * 2.0 - 1).transpose(2, 3))
print("on the CPU:", dict(tenon.torch.report().device.on_cpu))
"""


def ran(kind, first=""):
    """What a program says that trains on the device."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(kind=kind, first=first)],
        capture_output=True,
        text=True,
        timeout=300,
        env={
            **os.environ,
            "TENON_PLUGIN_TRUST": "any",
            "TENON_FALLBACK": "allow",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if done.stdout.startswith("absent:"):
        pytest.skip(done.stdout.strip())
    return done.stdout.strip()


def test_opencl_trains():
    assert ran("opencl") == "on the CPU: {}"


def test_a_plugin_in_a_process_of_its_own_trains():
    if not os.path.exists(library()):
        pytest.skip(f"{library()} has not been built")
    first = f"tenon.plugins.load({library()!r}, isolated=True)"
    assert ran(DEVICE, first) == "on the CPU: {}"
