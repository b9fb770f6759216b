# SPDX-License-Identifier: Apache-2.0
"""Mixed precision: what is cast, where, and that gradients, threads and recordings are right."""

import re
import threading

import pytest
import tenon
from tenon import amp, nn, optim

LOW = [tenon.bfloat16, tenon.float16]


@pytest.fixture
def pair():
    tenon.manual_seed(3)
    return tenon.normal([4, 5]), tenon.normal([5, 3])


# -- which dtypes


@pytest.mark.parametrize("dtype", LOW)
def test_each_class_of_operators_gets_its_dtype(pair, dtype):
    x, w = pair
    with amp.autocast(dtype=dtype):
        low = x @ w
        assert low.dtype == dtype
        assert tenon.exp(low).dtype == tenon.float32  # high
        assert tenon.relu(low).dtype == dtype  # as it comes
        assert (low + x[:, :3]).dtype == tenon.float32  # promoted
        assert tenon.concat([low, x], 1).dtype == tenon.float32  # widest
        assert tenon.concat([low, low], 1).dtype == dtype
        assert (low < 0.0).dtype == tenon.bool
    assert (x @ w).dtype == tenon.float32


def test_values_are_those_of_casts_by_hand(pair):
    x, w = pair
    with amp.autocast():
        product = x @ w
        softmax = tenon.softmax(product)
    expected = x.to(tenon.bfloat16) @ w.to(tenon.bfloat16)
    assert product.tolist() == expected.tolist()
    assert softmax.tolist() == tenon.softmax(expected.to(tenon.float32)).tolist()


def test_level_2_lowers_what_has_no_reason_for_float32(pair):
    x, w = pair
    with amp.autocast(level="O2"):
        assert (x + x).dtype == tenon.bfloat16
        assert tenon.concat([x, x]).dtype == tenon.bfloat16
        assert tenon.sum(x).dtype == tenon.float32
        assert (x < 0.0).dtype == tenon.bool
        assert tenon.transpose(x, 0, 1).dtype == tenon.float32  # a view stays a view
    with amp.autocast(level="O0"):
        assert (x @ w).dtype == tenon.float32


def test_what_must_not_be_cast_is_left_alone(pair):
    x, w = pair
    with amp.autocast():
        assert (x.to(tenon.float64) @ w.to(tenon.float64)).dtype == tenon.float64
        assert (x.to(tenon.float64) @ w).dtype == tenon.float64
        out = tenon.empty([4, 3])
        tenon.matmul(x, w, out=out)
        counts = tenon.tensor([1, 2, 3])
        assert tenon.sum(counts).dtype == tenon.int64
    assert tenon.allclose(out, x @ w, rtol=1e-6).item()  # out= computes in float32


def test_composite_losses_stay_float32():
    x = tenon.normal([4, 3]).to(tenon.bfloat16)
    target = tenon.tensor([0, 1, 2, 0])
    with amp.autocast():
        assert tenon.cross_entropy(x, target).dtype == tenon.float32
        assert tenon.mse_loss(x, tenon.zeros([4, 3])).dtype == tenon.float32
        assert tenon.mse_loss(x, x * 2).dtype == tenon.float32
        assert tenon.rms_norm(x).dtype == tenon.float32
    assert tenon.mse_loss(x, x * 2).dtype == tenon.bfloat16


@pytest.mark.parametrize("make", [lambda: nn.LSTM(4, 6), lambda: nn.GRU(4, 6)])
def test_recurrent_layers_run(make):
    layer, x = make(), tenon.normal([5, 2, 4])
    plain = layer(x)[0]
    with amp.autocast():
        out = layer(x)[0]
    # bfloat16 rounds to 8 bits, at every step of the sequence.
    assert tenon.allclose(out.to(tenon.float32), plain, atol=0.05).item()


# -- lists of the user


def test_users_move_operators(pair):
    x, w = pair
    with amp.autocast(custom_black_list=["matmul"], custom_white_list=["exp"]):
        assert (x @ w).dtype == tenon.float32
        assert tenon.exp(x).dtype == tenon.bfloat16
        assert amp.operator_class("matmul") == "high" and "exp" in amp.white_list()
    assert amp.operator_class("matmul") == "low" and amp.operator_class("cross_entropy") == "parts"
    assert "softmax" in amp.black_list() and "matmul" in amp.white_list()


@pytest.mark.parametrize(
    "options, text",
    [
        ({"dtype": "float32"}, "expected dtype bfloat16 or float16, got float32"),
        ({"level": "O3"}, "expected level 'O0', 'O1' or 'O2', got 'O3'"),
        ({"custom_black_list": ["mat_mul"]}, "there is no operator `mat_mul`"),
        (
            {"custom_black_list": ["exp"], "custom_white_list": ["exp"]},
            "expected an operator in one list, got exp in both",
        ),
        (
            {"custom_black_list": ["cross_entropy"]},
            "got `tenon::cross_entropy`, which is made of others, and they are cast one by one: move "
            "those, or call it in a region of its own in which nothing is cast",
        ),
        (
            {"custom_white_list": ["transpose"]},
            "got `tenon::transpose`, a view, which shares memory",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(options, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        amp.autocast(**options)
    assert not amp.is_autocast_enabled()


def test_a_text_is_no_list():
    with pytest.raises(TypeError, match=re.escape("write ['matmul']")):
        amp.autocast(custom_black_list="matmul")


# -- regions


def test_regions_nest_and_end(pair):
    x, w = pair
    assert amp.get_autocast_dtype() is None
    with amp.autocast():
        with amp.autocast(enabled=False):
            assert not amp.is_autocast_enabled()
            assert (x @ w).dtype == tenon.float32
            with amp.autocast(dtype="float16"):
                assert (x @ w).dtype == tenon.float16
        with pytest.raises(RuntimeError), amp.autocast(dtype="float16"):
            raise RuntimeError
        assert amp.get_autocast_dtype() == tenon.bfloat16
        assert (x @ w).dtype == tenon.bfloat16
    assert amp.get_autocast_dtype() is None


def test_a_region_is_a_decorator_and_may_be_entered_again(pair):
    x, w = pair
    region = amp.autocast()

    @region
    def product(again):
        """Its text."""
        return product(again - 1) if again else x @ w

    assert product(3).dtype == tenon.bfloat16 and product.__doc__ == "Its text."
    assert (x @ w).dtype == tenon.float32


def test_regions_belong_to_their_thread(pair):
    x, w = pair
    seen = {}

    def run():
        seen["other"] = (x @ w).dtype
        with amp.autocast(dtype="float16"):
            seen["own"] = (x @ w).dtype

    with amp.autocast():
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert (x @ w).dtype == tenon.bfloat16
    assert seen == {"other": tenon.float32, "own": tenon.float16}


# -- gradients


@pytest.mark.parametrize("inside", [False, True])
def test_gradients_pass_casts_and_do_not_depend_on_where_backward_runs(pair, inside):
    x, w = (each.detach().requires_grad_() for each in pair)

    def loss():
        return tenon.sum(tenon.exp(x @ w) * 0.1)

    if inside:
        with amp.autocast():
            loss().backward()
            assert amp.is_autocast_enabled()
    else:
        with amp.autocast():
            value = loss()
        value.backward()
    assert w.grad.dtype == x.grad.dtype == tenon.float32
    low_x, low_w = (each.detach().to(tenon.bfloat16).requires_grad_() for each in (x, w))
    tenon.sum(tenon.exp((low_x @ low_w).to(tenon.float32)) * 0.1).backward()
    assert w.grad.tolist() == low_w.grad.to(tenon.float32).tolist()
    assert x.grad.tolist() == low_x.grad.to(tenon.float32).tolist()


def test_a_region_around_backward_casts_nothing_in_it(pair):
    """What was computed in float32 has gradients in float32, with the same digits."""
    x, w = (each.detach().requires_grad_() for each in pair)
    want = tenon.grad((x @ w).square().sum(), [x, w])
    with amp.autocast():
        with amp.autocast(enabled=False):
            value = (x @ w).square().sum()
        got = tenon.grad(value, [x, w])
    assert [each.tolist() for each in got] == [each.tolist() for each in want]


def test_no_grad_leaves_nothing_behind(pair):
    """A cast that was made without recording must not serve a later call that records."""
    x, w = pair[0], pair[1].detach().requires_grad_()
    with amp.autocast():
        with tenon.no_grad():
            x @ w
        out = x @ w
    tenon.sum(out).backward()
    assert w.grad is not None
    with amp.autocast():
        first = (x @ w).tolist()
        with tenon.no_grad():
            w.multiply_(2.0)
        assert (x @ w).tolist() == [[2 * each for each in row] for row in first]


def test_second_derivatives(pair):
    x = pair[0].detach().requires_grad_()
    w = pair[1]
    with amp.autocast():
        value = tenon.sum((x @ w) ** 2)
        (grad,) = tenon.grad(value, x, create_graph=True)
        assert grad.dtype == tenon.float32
    (second,) = tenon.grad(tenon.sum(grad), x)
    # The products are of bfloat16, which rounds to 8 bits.
    assert tenon.allclose(second, tenon.sum(2 * w @ w.T, [0]).expand([4, 5]), rtol=0.05).item()


# -- operators of others


def test_operators_in_python_say_what_they_are():
    @tenon.op("amp_test::product(Tensor x, Tensor y) -> Tensor", amp="low")
    def product(x, y):
        return tenon.ops.matmul(x, y)

    @product.shape
    def _(x, y):
        return [x.shape[0], y.shape[1]]

    x = tenon.ones([2, 2])
    with amp.autocast():
        assert product(x, x).dtype == tenon.bfloat16
    assert product(x, x).dtype == tenon.float32
    with pytest.raises(
        ValueError, match="expected amp 'keep', 'low', 'high' or 'widest', got 'lo'"
    ):
        tenon.op("amp_test::other(Tensor x) -> Tensor", amp="lo")


def test_operator_files_say_what_they_are(tmp_path):
    path = tmp_path / "acme.yaml"
    path.write_text(
        "namespace: amp_file\nops:\n- op: twice\n  doc: Twice.\n  sig: (Tensor x) -> Tensor\n"
        "  kind: elementwise\n  amp: high\n  expr: x + x\n"
    )
    tenon.ops.load(path)
    with amp.autocast():
        assert tenon.ops.amp_file.twice(tenon.ones([2]).to(tenon.float16)).dtype == tenon.float32


# -- decorate


def test_decorate_converts_all_but_norms():
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2), nn.BatchNorm1d(2))
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    parameters = list(model.parameters())
    same = amp.decorate(model, optimizer, excluded_layers=[model[2]])
    assert same == (model, optimizer) and list(model.parameters()) == parameters
    assert [p.dtype.name for p in parameters] == ["bfloat16"] * 2 + ["float32"] * 6
    assert model[3].running_mean.dtype == tenon.float32
    assert optimizer.multi_precision
    with amp.autocast(level="O2"):
        out = model(tenon.normal([5, 4]))
    tenon.sum(out).backward()
    optimizer.step()
    assert optimizer.state[model[0].weight]["master"].dtype == tenon.float32
    assert "master" not in optimizer.state[model[1].weight]


def test_decorate_refuses():
    with pytest.raises(TypeError, match="expected modules, got int"):
        amp.decorate(3)
    with pytest.raises(ValueError, match="expected level 'O1' or 'O2', got 'O3'"):
        amp.decorate(nn.Linear(1, 1), level="O3")


# -- training


@pytest.mark.parametrize(
    "level, dtype", [("O1", "bfloat16"), ("O2", "bfloat16"), ("O1", "float16")]
)
def test_training_goes_as_in_float32(level, dtype):
    tenon.manual_seed(0)
    x = tenon.normal([64, 8])
    target = (tenon.sum(x * x, [1]) > 8.0).cast(tenon.int64)

    def losses(mixed):
        tenon.manual_seed(1)
        model = nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 2))
        optimizer = optim.AdamW(model.parameters(), lr=0.01)
        scaler = amp.GradScaler(enabled=mixed and dtype == "float16", init_scale=1024.0)
        if mixed and level == "O2":
            amp.decorate(model, optimizer, dtype=dtype)
        values = []
        for _ in range(40):
            optimizer.zero_grad()
            with amp.autocast(dtype=dtype, level=level, enabled=mixed):
                loss = tenon.cross_entropy(model(x), target)
            assert loss.dtype == tenon.float32
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            values.append(loss.item())
        return values

    wide, low = losses(False), losses(True)
    assert low[-1] < 0.4 * low[0]
    assert abs(low[-1] - wide[-1]) < 0.1 * wide[0]


# -- debug


def test_the_report_counts_operators_and_casts(pair):
    x, w = pair
    with amp.debug.operator_report() as report, amp.autocast():
        tenon.sum(x @ w)
    assert report.of("matmul") == {"bfloat16": 1} and report.of("sum") == {"float32": 1}
    assert report.of("cast") == {"bfloat16": 2, "float32": 1}
    assert (report.casts_to_low, report.casts_to_high) == (2, 1)
    assert report.cast_bytes == 2 * (20 + 15) + 4 * 12
    assert "casts by autocast: 2 to low precision, 1 to float32" in repr(report)
    assert repr(report).splitlines()[0].split() == ["operator", "bfloat16", "float32"]


def test_two_runs_are_compared(pair):
    x, w = pair

    def run():
        return tenon.sum(tenon.relu(x @ w))

    with amp.debug.record() as wide:
        run()
    with amp.debug.record() as low, amp.autocast():
        run()
    rows = amp.debug.compare(wide, low)
    assert [row.operator for row in rows] == ["matmul", "relu", "sum"]
    assert rows[0].dtypes == ("float32", "bfloat16")
    assert all(0 < row.relative < 0.02 for row in rows)
    with amp.debug.record() as other:
        tenon.exp(x)
    with pytest.raises(ValueError, match="got call 0 as matmul of shape .* and exp of shape"):
        amp.debug.compare(wide, other)


def test_the_first_infinity_is_named():
    x = tenon.full([4], 300.0)
    with (
        amp.autocast(dtype="float16", custom_white_list=["square"]),
        pytest.raises(FloatingPointError) as error,
        amp.debug.check_numerics(),
    ):
        y = x * 2.0
        tenon.square(y)  # the line
    assert "[square] made inf at element 0 of float16 (4,)" in str(error.value)
    line = next(i for i, text in enumerate(open(__file__), 1) if text.endswith("# the line\n"))
    assert f"test_amp.py:{line} in test_the_first_infinity_is_named" in str(error.value)
