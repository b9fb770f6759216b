# SPDX-License-Identifier: Apache-2.0
"""Kernels that break their contract are found, named, and hurt nothing else."""

import os

import pytest
import tenon
from plugin_support import FAULTY_PLUGINS, python

CLUMSY = os.path.join(FAULTY_PLUGINS, "libtenon_clumsy.so")

pytestmark = pytest.mark.skipif(not os.path.exists(CLUMSY), reason="TENON_BUILD_DIR is not set")


@pytest.fixture(scope="module", autouse=True)
def clumsy():
    tenon.load_plugin(CLUMSY)


@pytest.fixture(params=["cpu", "null"])
def device(request):
    return request.param


def call(name, x):
    return tenon._core.operator(f"clumsy::{name}")(x)


def values(count, device):
    return tenon.tensor([float(i) for i in range(count)], device=device)


def caught(name, device, count=4, **options):
    """The text of the error that a call raises."""
    x = values(count, device)
    with tenon.validation(**options), pytest.raises(tenon.InternalError) as error:
        call(name, x)
    assert x.tolist() == [float(i) for i in range(count)], "the argument was hurt"
    return str(error.value)


def test_a_sound_kernel_passes(device):
    x = values(5, device)
    with tenon.validation(nan="error", compare="cpu") as watched:
        assert call("good", x).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
        assert watched.calls >= 1
    counted = watched.calls
    call("good", x)
    assert watched.calls == counted, "off means off"


@pytest.mark.parametrize(
    "name, what",
    [
        ("past_end", "wrote {n} bytes past the end of result `out`, first at byte offset 16"),
        (
            "before_start",
            "wrote {n} bytes before the start of result `out`, first at byte offset -4",
        ),
        ("far_past", "wrote {n} bytes past the end of result `out`, first at byte offset 4016"),
    ],
)
def test_writing_out_of_bounds(name, what, device):
    text = caught(name, device)
    assert f"[clumsy::{name}] validation: the kernel of plugin clumsy for {device} wrote" in text
    assert any(what.format(n=n) in text for n in (3, 4))  # one byte may happen to be the band's
    assert "expected writes to offsets 0 to 16 of float32 (4,): check its loop" in text


def test_writing_into_an_argument(device):
    text = caught("into_input", device)
    assert (
        f"[clumsy::into_input] validation: the kernel of plugin clumsy for {device} wrote into"
        in text
    )
    assert "argument tensor 0, at byte offset" in text and "the argument was restored" in text


def test_leaving_elements_unwritten(device):
    text = caught("skips_last", device)
    assert "left 1 of 4 elements of result `out` unwritten, first element 3" in text
    assert "left 4 of 4 elements of result `out` unwritten, first element 0" in caught(
        "writes_nothing", device
    )


def test_results_that_look_like_the_fill_are_results():
    # 0xa5 and 0x5a, byte by byte: copied, not left.
    x = tenon.tensor([0xA5] * 64 + [0x5A] * 64, dtype=tenon.uint8)
    with tenon.validation():
        assert (x + 0).tolist() == x.tolist()


def test_nan_from_finite_arguments_is_found_if_asked_for(device):
    with tenon.validation():
        call("makes_nan", values(4, device))
    text = caught("makes_nan", device, nan="error")
    assert "made nan at element 2 of result `out` from finite arguments" in text
    with tenon.validation(nan="error"):
        assert str(call("good", tenon.tensor([float("nan")], device=device)).tolist()) == "[nan]"
        with pytest.raises(tenon.InternalError, match="made -inf at element 0"):
            tenon.log(tenon.tensor([0.0]))


def test_results_are_compared_with_the_hosts_if_asked_for():
    x = values(4, "null")
    with tenon.validation():
        call("rounds", x)
    text = caught("rounds", "null", compare="cpu")
    assert (
        "differs from the host at element 3 of result `out`: expected 4, got 4.5; correct it"
        in text
    )
    with tenon.validation(compare="cpu", atol=1.0):
        call("rounds", x)
    text = caught("positive", "null", compare="cpu")
    assert "gave result `out` as float32 (2,); expected float32 (3,), as on the host" in text


def test_lowered_parts_are_seen(device):
    text = caught("lowered_to_overrunning", device)
    assert f"[clumsy::past_end] validation: the kernel of plugin clumsy for {device} wrote" in text
    assert f"[clumsy::lowered_to_overrunning] decomposed on {device}:0" in text


def test_composites_that_one_kernel_serves_are_watched_whole():
    report = tenon.explain("rms_norm", "cpu")
    assert report["composite"] and report["route"] == "native"
    x = tenon.tensor([[3.0, 4.0]])
    plain = tenon.rms_norm(x)
    with tenon.validation() as watched:
        assert tenon.rms_norm(x).tolist() == plain.tolist()
    assert watched.calls == 1


def test_a_whole_model_passes_with_gradients():
    from tenon import nn

    tenon.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(6, 8), nn.ReLU(), nn.LayerNorm(8), nn.Dropout(0.5), nn.Linear(8, 3)
    )
    x, labels = tenon.normal([5, 6]), tenon.tensor([0, 1, 2, 0, 1])
    state = tenon._core.random_state()

    def step():
        tenon._core.set_random_state(*state)
        loss = nn.functional.cross_entropy(model(x), labels)
        model.zero_grad()
        loss.backward()
        return loss.item(), [p.grad.tolist() for p in model.parameters()]

    plain = step()
    with tenon.validation(nan="error") as watched:
        assert step() == plain
    assert watched.calls > 15


def test_results_of_callers_are_written_only_once_they_are_sound(device):
    x = values(4, device)
    with tenon.validation():
        x.add_(1.0)
        assert x.tolist() == [1.0, 2.0, 3.0, 4.0]
        strided = tenon.zeros([4, 2], device=device)
        strided[:, 1].copy_(x)
        assert strided.tolist() == [[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [0.0, 4.0]]


def test_shapes_dtypes_and_layouts(device):
    with tenon.validation(compare="cpu"):
        for shape in ([], [0], [0, 3], [1], [3, 4]):
            x = tenon.ones(shape, device=device)
            assert (x + x).tolist() == tenon.full(shape, 2.0).tolist()
        x = tenon.arange(12, device=device).reshape([3, 4])
        assert x.transpose().sum([0]).tolist() == [6, 22, 38]
        assert (x.flip([1]) * 2).tolist()[0] == [6, 4, 2, 0]
        assert tenon.concat([x, x]).shape == (6, 4)
        for dtype in (tenon.bool, tenon.float16, tenon.bfloat16, tenon.complex64):
            assert x.to(dtype).to(tenon.int64).tolist()[0][:2] == [0, 1]


def test_tensors_move_between_devices():
    with tenon.validation():
        x = values(4, "cpu").to("null")
        assert x.device.type == "null" and x.to("cpu").tolist() == [0.0, 1.0, 2.0, 3.0]
        assert x.to("meta").shape == (4,)
        assert tenon.zeros([2], device="null").device.type == "null"


def test_blocks_nest_and_end(device):
    x = values(4, device)
    with tenon.validation(nan="error"):
        with tenon.validation():
            call("makes_nan", x)
        with pytest.raises(tenon.InternalError, match="made nan"):
            call("makes_nan", x)
    call("makes_nan", x)
    call("skips_last", x)


def test_for_a_whole_program():
    code = f"""
import tenon, threading
tenon.load_plugin({CLUMSY!r})
skips = tenon._core.operator("clumsy::skips_last")
def one():
    try: skips(tenon.ones([4])); print("missed")
    except tenon.InternalError as error: print("unwritten" in str(error))
thread = threading.Thread(target=one); thread.start(); thread.join()
one()
"""
    status, out, err = python("-c", code, TENON_VALIDATE="1")
    assert (status, out) == (0, "True\nTrue\n"), err
    status, out, err = python("-c", code, TENON_VALIDATE="0")
    assert (status, out) == (0, "missed\nmissed\n"), err


def test_options_are_checked():
    for options, text in (
        ({"nan": "warn"}, "expected nan=None or 'error', got 'warn'"),
        ({"compare": "gpu"}, "expected compare=None or 'cpu', got 'gpu'"),
        ({"compare": "cpu", "rtol": -1}, "expected rtol of at least 0, got -1"),
        ({"atol": 1.0}, "atol is for comparing; pass compare='cpu' as well"),
    ):
        with pytest.raises(ValueError) as error:
            tenon.validation(**options)
        assert text in str(error.value)
