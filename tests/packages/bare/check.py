# SPDX-License-Identifier: Apache-2.0
"""What a person tries first after `pip install`: runs where Tenon alone is installed, without NumPy or a compiler."""

import importlib
import math
import sys
import tempfile
from pathlib import Path

import tenon
from tenon import nn
from tenon.optim import SGD

assert "numpy" not in sys.modules

x = tenon.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
y = (x @ x.T).relu().sum()
y.backward()
assert y.tolist() == 52.0
assert x.grad.tolist() == [[8.0, 12.0], [8.0, 12.0]]

# Kernels of each family, as each is a library of its own inside the wheel.
wave = tenon.sin(tenon.arange(8, dtype=tenon.float32) * (math.pi / 4))
assert abs(tenon.fft.fft(wave).abs().max().item() - 4.0) < 1e-5
assert tenon.sort(tenon.tensor([3, 1, 2])).tolist() == [1, 2, 3]

tenon.manual_seed(0)
model = nn.Linear(2, 1)
optimizer = SGD(model.parameters(), lr=0.03)
target = tenon.tensor([[1.0], [2.0]])


@tenon.compile
def loss_of(inputs):
    return ((model(inputs) - target) ** 2).mean()


losses = []
for _ in range(50):
    optimizer.zero_grad()
    loss = loss_of(x.detach())
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 2, losses

# A plugin by its file, and a device that it brings.
tenon.plugins.load(Path(tenon.__file__).parent / "plugins" / "libtenon_null.so")
assert (x.detach().to("null") + 1.0).tolist() == [[2.0, 3.0], [4.0, 5.0]]

# Operators from a file, which the interpreter reads with its own YAML library.
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "bare.yaml"
    file.write_text(
        "namespace: bare\nops:\n- op: gate\n  doc: A gate.\n  sig: (Tensor x) -> Tensor\n"
        "  kind: elementwise\n  dtypes: {compute: promote_float, allow: floating}\n"
        "  expr: x * sigmoid(x)\n  grad: {x: dout * x}\n"
    )
    assert tenon.ops.load(file).gate(tenon.zeros(3)).tolist() == [0.0] * 3
    file.write_text("namespace: [")
    try:
        tenon.ops.load(file)
    except ValueError as error:
        assert "bare.yaml:1" in str(error), error
    else:
        raise AssertionError("expected an error of a file that is no YAML")

# What PyTorch imports by the wheel's entry point.
importlib.import_module("tenon_torch_autoload").autoload()

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "model.safetensors"
    tenon.save(model.state_dict(), file)
    restored = tenon.load(file)
    assert restored["weight"].tolist() == model.weight.tolist()
    program = tenon.export(model, (x.detach(),))
    program.save(Path(folder) / "model.tenon")
    again = tenon.jit.load(Path(folder) / "model.tenon")
    assert again(x.detach()).tolist() == model(x.detach()).tolist()

print(f"tenon {tenon.__version__}, Python {sys.version.split()[0]}: all right")
