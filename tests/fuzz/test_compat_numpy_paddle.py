# SPDX-License-Identifier: Apache-2.0
"""A slice of the comparison of tenon.compat.numpy and tenon.compat.paddle with their libraries."""

import inspect
import sys

import numpy as np
import pytest
import tenon

from .peers.compat.signature_calls import check


def test_a_slice_of_numpy():
    from .peers.compat.of_numpy import LIBRARY

    if not np.__version__.startswith("2.4"):
        pytest.skip(f"the calls are those of NumPy 2.4, this is {np.__version__}")
    names = ("sum", "nanvar", "take", "add", "reshape", "linalg.norm", "fft.rfft", "quantile")
    report = check(LIBRARY, names, samples=2)
    assert report.differences() == []
    assert report.total()["same"] > 400


def needs_paddle():
    """Skips without Paddle. A folder of sources in tests/compat has its name, and is no package with `nn`."""
    pytest.importorskip("paddle.nn", reason="Paddle is not a dependency; it is compared with")
    return sys.modules["paddle"]


def test_a_slice_of_paddle():
    needs_paddle()
    from .peers.compat.of_paddle import LIBRARY

    names = (
        "cummax",
        "norm",
        "diagonal",
        "put_along_axis",
        "unique",
        "linalg.norm",
        "nn.functional.linear",
        "nn.functional.avg_pool2d",
        "nn.functional.cross_entropy",
    )
    report = check(LIBRARY, names, samples=2)
    assert report.differences() == []
    assert report.total()["same"] > 300


def test_signatures_of_paddle():
    paddle = needs_paddle()
    from tenon.compat import paddle as compat
    from tenon.compat.paddle import _signatures
    from tenon.compat.paddle.nn.functional import _signatures as functional

    def parameters(value):
        found = value if isinstance(value, inspect.Signature) else inspect.signature(value)
        given = found.parameters.values()
        return [(p.name, p.kind, repr(p.default)) for p in given if p.name != "self"]

    tables = {
        (): _signatures.FUNCTIONS,
        ("linalg",): _signatures.LINALG,
        ("fft",): _signatures.FFT,
        ("signal",): _signatures.SIGNAL,
        ("nn", "functional"): functional.FUNCTIONS,
    }
    for path, table in tables.items():
        place = paddle
        for part in path:
            place = getattr(place, part)
        for name, signature in table.items():
            # save() and load() take no configurations, and compiled functions say nothing.
            if name not in ("save", "load") and inspect.isfunction(getattr(place, name)):
                assert parameters(signature) == parameters(getattr(place, name)), (path, name)
    for name in compat.nn.__all__:
        layer = getattr(compat.nn, name)
        if inspect.isclass(layer) and name != "Parameter":
            theirs = getattr(paddle.nn, name).__init__
            assert parameters(layer) == parameters(theirs), name


LAYERS = """
Linear(3, 5) | 4 3
Conv1D(4, 6, 3, padding=1) | 2 4 7
Conv2D(4, 6, [3, 2], stride=2, padding="SAME") | 2 4 6 5
Conv2D(4, 6, 3, groups=2, bias_attr=False) | 2 4 6 5
Conv3D(2, 3, 2) | 1 2 4 4 4
Conv1DTranspose(4, 6, 3, stride=2) | 2 4 7
Conv2DTranspose(4, 6, 3, 2, 1, 1, 1, 2) | 2 4 6 5
Conv3DTranspose(2, 3, 2, 2) | 1 2 4 4 4
BatchNorm1D(4) | 3 4
BatchNorm2D(4, 0.8) | 2 4 6 5
BatchNorm3D(2) | 1 2 4 4 4
LayerNorm([6, 5]) | 2 4 6 5
GroupNorm(2, 4) | 2 4 6 5
InstanceNorm2D(4) | 2 4 6 5
PReLU(4) | 2 4 6 5
AvgPool2D(3, 2, 1) | 2 4 6 5
MaxPool2D(2) | 2 4 6 5
Pad2D(1) | 2 4 6 5
Flatten() | 2 4 6 5
Softmax() | 2 4
GELU() | 2 4
Sequential(("a", Linear(4, 3)), ("b", ReLU())) | 2 4
"""


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("line", LAYERS.strip().splitlines())
def test_layers_of_paddle(line, training):
    paddle = needs_paddle()
    from tenon.compat import paddle as compat

    text, _, shape = line.rpartition("|")
    theirs, ours = eval(text, {}, vars(paddle.nn)), eval(text, {}, vars(compat.nn))
    assert sorted(theirs.state_dict()) == sorted(ours.state_dict())
    ours.set_state_dict({k: tenon.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    (theirs.train if training else theirs.eval)()
    ours.train(training)
    x = np.random.default_rng(1).normal(size=tuple(map(int, shape.split()))).astype("float32")
    for _ in range(2):  # running statistics move
        want, got = theirs(paddle.to_tensor(x)).numpy(), ours(tenon.tensor(x)).detach().numpy()
        assert got.shape == want.shape
        # Single precision, sums in another order.
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    for name, value in theirs.state_dict().items():
        mine = ours.state_dict()[name].detach().numpy()
        np.testing.assert_allclose(mine, value.numpy(), rtol=1e-5, atol=1e-6)
