# SPDX-License-Identifier: Apache-2.0
"""torch.compile with Tenon's backend, beside PyTorch."""

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

import tenon  # noqa: E402

CLOSE = {"rtol": 1e-4, "atol": 1e-4}


@pytest.fixture(autouse=True)
def anew():
    torch.manual_seed(0)
    torch._dynamo.reset()


def compiled(model, **options):
    return torch.compile(model, backend=tenon.torch.backend, options=options or None)


def check(model, *inputs, **options):
    model.eval()
    before = len(tenon.torch.report())
    with torch.no_grad():
        expected = model(*inputs)
        got = compiled(model, **options)(*inputs)
    torch.testing.assert_close(got, expected, **CLOSE)
    assert got.stride() == expected.stride()
    made = tenon.torch.report()[before:]
    assert made
    return made


def test_inference():
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten()
    )
    made = check(net, torch.randn(2, 3, 8, 8), fallback="deny")
    assert all(not entry.refused and entry.steps for entry in made)


def test_transformer():
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    check(layer, torch.randn(2, 5, 16))


def test_inputs_and_results_share_memory():
    class Net(torch.nn.Module):
        def forward(self, x):
            return x * 2

    step = compiled(Net(), fallback="deny")
    x = torch.ones(4)
    with torch.no_grad():
        assert step(x).tolist() == [2] * 4
        x.add_(1)
        assert step(x).tolist() == [4] * 4


def test_many_sizes():
    step = compiled(torch.nn.Linear(4, 2).eval(), fallback="deny")
    with torch.no_grad():
        for batch in (2, 3, 5, 9):
            x = torch.randn(batch, 4)
            torch.testing.assert_close(step(x), step._orig_mod(x), **CLOSE)


def test_writes_into_buffers():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x):
            self.count.add_(x)
            return self.count * 2

    net = Net()
    step = compiled(net, fallback="deny")
    with torch.no_grad():
        assert step(torch.ones(2)).tolist() == [2, 2]
        assert step(torch.ones(2)).tolist() == [4, 4]
    assert net.count.tolist() == [2, 2]


def test_what_cannot_be_told_stays_with_pytorch_or_is_an_error():
    class Net(torch.nn.Module):
        def forward(self, x):
            return x.geqrf()[0]

    x = torch.randn(3, 3)
    with torch.no_grad():
        torch.testing.assert_close(compiled(Net())(x), x.geqrf()[0], **CLOSE)
        assert "geqrf" in tenon.torch.report()[-1].refused
        torch._dynamo.reset()
        with pytest.raises(Exception, match="geqrf: there is no line for it"):
            compiled(Net(), fallback="deny")(x)


def test_wrong_options():
    with pytest.raises(Exception, match="expected options among fallback, got 'devise'"):
        compiled(torch.nn.Linear(2, 2), devise="cpu")(torch.ones(1, 2))
