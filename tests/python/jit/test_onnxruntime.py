# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime as a claimer of sub-graphs. Most tests need its library: TENON_ONNXRUNTIME, or the wheel `onnxruntime` of the
peers' environment."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
import tenon
from tenon import inference, nn
from tenon.nn import functional as F


def _library():
    named = os.environ.get("TENON_ONNXRUNTIME")
    if named:
        return named
    found = importlib.util.find_spec("onnxruntime")
    folder = pathlib.Path(found.origin).parent / "capi" if found and found.origin else None
    files = sorted(folder.glob("libonnxruntime.so*")) if folder else []
    return str(files[-1]) if files else None


LIBRARY = _library()
needs_library = pytest.mark.skipif(
    LIBRARY is None,
    reason="ONNX Runtime is not here: pip install onnxruntime, or set TENON_ONNXRUNTIME",
)


@pytest.fixture(autouse=True, scope="module")
def library():
    if LIBRARY:
        os.environ["TENON_ONNXRUNTIME"] = LIBRARY  # read when the first program asks for it
    yield


@pytest.fixture(autouse=True)
def no_gradients():
    tenon.manual_seed(3)
    with tenon.no_grad():
        yield


def claimed(function, inputs, options="", **settings):
    program = tenon.export(function, inputs, **settings).freeze()
    return program.optimize(numerics="fast").claim("onnxruntime", options)


def arrays(results):
    results = results if isinstance(results, tuple) else (results,)
    return [result.numpy() for result in results]


def check(function, *inputs, parts=1, whole=True, options=""):
    """The program gives what the function gives, with so many sessions and, where `whole`, no step beside them."""
    program = claimed(function, inputs, options)
    for _ in range(3):
        for want, got in zip(arrays(function(*inputs)), arrays(program(*inputs)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, strict=True)
    plan = program.plan()
    assert plan.count("one executable of onnxruntime") == parts, plan
    assert "a run failed" not in plan and "run by kernels" not in plan, plan
    if whole and parts == 1:
        steps = len(program.graph.steps)
        assert re.search(rf"^step(s 0 to {steps - 1}| 0):", plan, re.MULTILINE), plan
    return program


@needs_library
def test_a_product_and_a_sum():
    weight, bias = tenon.randn(24, 40), tenon.randn(40)
    program = check(lambda x: x @ weight + bias, tenon.randn(17, 24))
    assert program.plan().startswith(
        "steps 0 to 1: one executable of onnxruntime; 1 of 2 results stay in it"
    )


@needs_library
def test_weights_are_read_where_they_lie():
    weight = tenon.randn(300, 40)
    program = check(lambda x: x @ weight, tenon.randn(2, 300))
    leaf = next(iter(program.leaves.values()))
    x = tenon.randn(2, 300)
    leaf.fill_(0.25)  # a constant was written all the same: the session is made anew
    np.testing.assert_allclose(program(x).numpy(), (x @ leaf).numpy(), rtol=1e-5, atol=1e-5)


@needs_library
def test_weights_that_are_no_constants_are_inputs():
    weight = tenon.randn(24, 40)
    program = tenon.export(lambda x: x @ weight, (tenon.randn(3, 24),))
    program = program.optimize(numerics="fast").claim("onnxruntime")
    for _ in range(3):
        weight += 1
        x = tenon.randn(3, 24)
        np.testing.assert_allclose(program(x).numpy(), (x @ weight).numpy(), rtol=1e-5, atol=1e-4)
    assert "one executable of onnxruntime" in program.plan()


@needs_library
def test_a_convolution_network():
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=4),
        nn.SiLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, 5),
    ).eval()
    check(net, tenon.randn(2, 3, 16, 16))


@needs_library
@pytest.mark.parametrize("mask", [None, "bool", "float32"])
def test_attention(mask):
    query, key, value = (tenon.randn(2, 3, 5, 8) for _ in range(3))
    given = None if mask is None else tenon.randn(2, 1, 5, 5)
    if mask == "bool":
        given = given > 0
        given[0, 0, 2] = False  # a row that sees nothing
    check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, given), query, key, value)


@needs_library
@pytest.mark.parametrize("has_mask", [False, True])
def test_causal_attention(has_mask):
    query = tenon.randn(2, 3, 5, 8)
    key, value = tenon.randn(2, 3, 7, 8), tenon.randn(2, 3, 7, 8)
    mask = None
    if has_mask:
        mask = tenon.rand(2, 1, 5, 7) > 0.3
        mask[1, 0, 2, :3] = False  # what is left of this row is behind its position
    check(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask, causal=True),
        query,
        key,
        value,
    )


@needs_library
def test_a_transformer_layer():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu").eval()
    table = nn.Embedding(11, 16)
    tokens = tenon.arange(12).reshape(2, 6) % 11
    check(lambda tokens: layer(table(tokens)).mean(1), tokens)


X = (2, 3, 4)
OPERATORS = {
    "arithmetic": lambda x: (x + 2) * x - x / 3,
    "powers": lambda x: (x * x + 1) ** 1.5,
    "roots": lambda x: tenon.rsqrt(x.square() + 1) + tenon.sqrt(x.abs()),
    "unary": lambda x: tenon.exp(-x.abs()) + tenon.tanh(x) * tenon.erf(x) + x.sigmoid(),
    "activations": lambda x: (
        F.gelu(x) + F.gelu(x, approximate=True) + F.leaky_relu(x, 0.2) + F.elu(x, 0.5)
    ),
    "more_activations": lambda x: F.hardswish(x) + F.hardsigmoid(x) + F.mish(x) + F.softplus(x, 2),
    "limits": lambda x: tenon.maximum(x, -x * 2) + tenon.minimum(x, 0.5) + x.clip(-0.5, 0.7),
    "choices": lambda x: tenon.where(x > 0, x, x * 3) + tenon.where((x < 1) & (x >= -1), 1.0, x),
    "moves": lambda x: (
        x.transpose(0, 2).reshape(4, 6).unsqueeze(1).permute(2, 1, 0).reshape(4, 6) * 2
    ),
    "cuts": lambda x: x[:, 1:, ::2] * 2 + x[1, 1, 1] + x.narrow(1, 1, 2)[:, :, :2],
    "joins": lambda x: tenon.concat([x, x * 2], 1) + tenon.stack([x, x], 1).reshape(2, 6, 4),
    "sums": lambda x: x.sum() + x.mean(1) * x.max(1) + x.amin((0, 2), keepdim=True).sum(),
    "softmax": lambda x: tenon.softmax(x, 1) + tenon.log_softmax(x, -1),
    "norms": lambda x: F.layer_norm(x, (4,)) + F.layer_norm(x, (3, 4)) + F.rms_norm(x),
    "spread": lambda x: x[:, :1].expand(2, 3, 4) * 2,
    "numbers": lambda x: x.sum(1).to(tenon.float32) * (x > 0).to(tenon.float32).sum((0, 1)),
}


@needs_library
@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    check(OPERATORS[name], tenon.randn(*X))


@needs_library
def test_integers():
    x = tenon.arange(24).reshape(*X) - 10
    check(lambda x: (x * 3 + x - 1).reshape(4, 6) + 1, x)
    check(lambda x: tenon.where(x == 3, x, 0), x)


@needs_library
def test_what_is_refused_stays_with_kernels():
    def function(x):
        return tenon.cumsum(x * 2 + 1, -1) * 3 - 1

    program = check(function, tenon.randn(3, 5), parts=2)
    assert "steps 0 to 1: one exec" in program.plan() and "steps 3 to 4: one exec" in program.plan()
    check(function, tenon.randn(3, 5).to(tenon.float64), parts=0)


@needs_library
def test_what_a_step_reads_counts_as_well():
    """Comparisons of float64 make booleans; and of two results the second has no form in ONNX."""
    wide = tenon.randn(3, 5).to(tenon.float64)
    check(lambda x, y: (x + 1) * (y < 0.5).to(tenon.float32), tenon.randn(3, 5), wide, parts=2)
    check(lambda x, y: tenon.where(tenon.isnan(y), x, -x), tenon.randn(3, 5), wide, whole=False)

    def positions(x):
        values, indices = tenon.max_pool2d_with_indices(x + 1, 2)
        return values * 2, indices + 1

    check(positions, tenon.randn(1, 2, 6, 6), parts=2)
    check(lambda x: positions(x)[0], tenon.randn(1, 2, 6, 6))


@needs_library
def test_numbers_beside_integers():
    small = tenon.arange(6).to(tenon.int32)
    check(lambda x: (x * 2 < 7).to(tenon.int32) + x, small)
    check(lambda x: (x * 2 < 3_000_000_000).to(tenon.int32) + x, small, parts=2)
    check(lambda x: (x * 2 == -(2**31)).to(tenon.int32) + x, small)


@needs_library
@pytest.mark.parametrize("size, parts", [(6, 1), (8, 2)])
def test_windows_that_begin_in_the_margin(size, parts):
    """Whether the last one of these counts depends on the library's version."""
    function = lambda x: F.max_pool2d(x * 2, 2, 3, 1, ceil_mode=True) + 1
    check(function, tenon.randn(1, 2, size, size), parts=parts)


@needs_library
def test_results_that_are_not_row_major_stay_with_kernels():
    program = claimed(lambda x: x.transpose(0, 1) * 2, (tenon.randn(3, 5),))
    x = tenon.randn(3, 5)
    for _ in range(2):
        assert program(x).stride() == (x.transpose(0, 1) * 2).stride()
    assert "claimed by onnxruntime, and run by kernels: %2 is not row-major" in program.plan()


@needs_library
def test_options():
    function = lambda x: tenon.softmax(x * 2 + 1, -1) * 3 - 1
    check(function, tenon.randn(3, 5), parts=2, options={"exclude": ["softmax"], "threads": 2})
    check(function, tenon.randn(3, 5), options="config.session.intra_op.allow_spinning=1")
    check(function, tenon.randn(3, 5), options={"providers": ["CPUExecutionProvider"]})
    with pytest.raises(
        tenon.DeviceError,
        match="expected a provider among .*CPUExecutionProvider.*got 'NoneExecutionProvider'",
    ):
        claimed(function, tenon.randn(3, 5), {"providers": ["NoneExecutionProvider"]})


@needs_library
def test_a_provider_that_is_not_there_is_an_error():
    wanted = {
        "providers": ["TensorrtExecutionProvider", "CPUExecutionProvider"],
        "TensorrtExecutionProvider.trt_fp16_enable": True,
    }
    try:
        program = claimed(lambda x: x * 2 + 1, tenon.randn(3, 5), wanted)
    except tenon.DeviceError as error:  # the wheel without TensorRT
        assert "got 'TensorrtExecutionProvider'; install a build of ONNX Runtime" in str(error)
    else:
        x = tenon.randn(3, 5)
        for _ in range(2):
            np.testing.assert_allclose(program(x).numpy(), (x * 2 + 1).numpy(), rtol=1e-2)


@needs_library
def test_programs_of_many_sizes():
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).eval()
    program = claimed(net, (tenon.rand(4, 8),), dynamic_shapes=[{0: tenon.Dim("batch", max=16)}])
    for count in (4, 1, 16, 7, 4, 1):
        for _ in range(3):
            x = tenon.randn(count, 8)
            np.testing.assert_allclose(program(x).numpy(), net(x).numpy(), rtol=1e-5, atol=1e-5)
    assert "one executable of onnxruntime" in program.plan()


@needs_library
def test_clones_run_at_once(tmp_path):
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).eval()
    tenon.export(net, (tenon.rand(4, 64),)).freeze().save(tmp_path / "m.tenon")
    first = inference.Predictor(
        tmp_path / "m.tenon",
        numerics="fast",
        subgraphs=["onnxruntime"],
        fallback="deny",
        warmup="recorded",
    )
    (name,), right = first.inputs, []

    def work(predictor, x, want):
        for _ in range(50):
            (got,) = predictor.run({name: x}).values()
            right.append(np.allclose(got.numpy(), want, rtol=1e-5, atol=1e-5))

    inputs = [tenon.randn(4, 64) * (i + 1) for i in range(4)]
    threads = [
        threading.Thread(target=work, args=(first.clone(), x, net(x).numpy())) for x in inputs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 200


@needs_library
def test_a_child_of_a_fork_runs_kernels():
    function = lambda x: tenon.softmax(x * 2 + 1, -1)
    x = tenon.randn(30, 50)
    program = claimed(function, (x,), "threads=2")
    for _ in range(2):
        program(x)
    child = os.fork()
    if child == 0:
        is_right = np.array_equal(program(x).numpy(), function(x).numpy())
        os._exit(0 if is_right and "before this process was forked" in program.plan() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def model(tmp_path):
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).eval()

    def forward(x):
        return {"scores": tenon.softmax(net(x), -1)}

    program = tenon.export(
        forward, (tenon.rand(4, 8),), dynamic_shapes=[{0: tenon.Dim("batch", max=16)}]
    )
    program.freeze().save(tmp_path / "model.tenon")
    return tmp_path / "model.tenon"


@needs_library
def test_a_predictor(model):
    plain = inference.Predictor(model)
    p = inference.Predictor(
        model, numerics="fast", subgraphs=["onnxruntime"], fallback="deny", warmup=[{"x": (2, 8)}]
    )
    assert "onnxruntime" in p.explain().splitlines()[1]
    for count in (2, 2, 5, 5, 16, 16):
        x = tenon.randn(count, 8)
        want, got = plain.run({"x": x})["scores"], p.run({"x": x})["scores"]
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


@needs_library
def test_deny_names_the_steps_that_are_left(model):
    chosen = {"onnxruntime": {"exclude": ["softmax"]}}
    with pytest.raises(
        tenon.PolicyError,
        match=r"\(onnxruntime: exclude=softmax\) takes these steps.*\n  .*softmax",
    ):
        inference.Predictor(model, numerics="fast", subgraphs=chosen, fallback="deny")
    p = inference.Predictor(model, numerics="fast", subgraphs=chosen, fallback="allow")
    assert p.run({"x": tenon.rand(2, 8)})["scores"].shape == (2, 3)


@needs_library
def test_deny_tells_of_sessions_that_cannot_be_made(model):
    # Processors for the three threads beside the caller's are one too few.
    affinities = {"threads": 4, "config.session.intra_op_thread_affinities": "1"}
    chosen = {"onnxruntime": affinities}
    p = inference.Predictor(model, numerics="fast", subgraphs=chosen, warmup="recorded")
    assert "claimed by onnxruntime, and run by kernels: onnxruntime: " in p.explain()
    assert p.run({"x": tenon.rand(2, 8)})["scores"].shape == (2, 3)
    with pytest.raises(
        tenon.PolicyError,
        match=r"kernels run steps that claimers(.|\n)*steps 0 to \d: onnxruntime: ",
    ):
        inference.Predictor(model, numerics="fast", subgraphs=chosen, fallback="deny")


def test_only_programs_of_fast_numerics(model):
    program = tenon.export(lambda x: x * 2, (tenon.rand(3),))
    with pytest.raises(RuntimeError, match='expected numerics="fast" for the claimer'):
        program.claim("onnxruntime")
    with pytest.raises(RuntimeError, match='`subgraphs`: .*expected numerics="fast"'):
        inference.Predictor(model, subgraphs="onnxruntime")


def test_a_claimer_that_there_is_not(model):
    program = tenon.export(lambda x: x * 2, (tenon.rand(3),)).optimize(numerics="fast")
    with pytest.raises(tenon.NotFoundError, match="got 'absent', of which no plugin offers"):
        program.claim("absent")
    with pytest.raises(tenon.NotFoundError, match="`subgraphs`: .*got 'absent'"):
        inference.Predictor(model, numerics="fast", subgraphs={"absent": {"threads": 1}})
    with pytest.raises(ValueError, match="names of claimers, with options behind a colon"):
        inference.Predictor(model, numerics="fast", subgraphs=": threads=1")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("thread=2", "there is no key `thread`; did you mean `threads`"),
        ("threads=0", "a number from 1 to 1024, got '0'"),
        ("threads", "expected key=value, got 'threads'"),
        ("exclude=softmaxx", "names of operators, got 'softmaxx'"),
        ("providers=", "`providers`: expected names, got nothing"),
        ("CUDAExecutionProvider.device_id=0", "`providers` lists before them"),
    ],
)
def test_options_that_there_are_not(options, text):
    program = tenon.export(lambda x: x * 2, (tenon.rand(3),)).optimize(numerics="fast")
    with pytest.raises(ValueError, match=re.escape(text)):
        program.claim("onnxruntime", options)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/nowhere/libonnxruntime.so", "expected a library of ONNX Runtime, got none (/nowhere/"),
        ("libm.so.6", "expected a library with OrtGetApiBase"),
    ],
)
def test_a_library_that_is_missing(path, text):
    code = (
        "import tenon\n"
        "program = tenon.export(lambda x: x * 2, (tenon.ones(3),)).optimize(numerics='fast')\n"
        "try:\n    program.claim('onnxruntime')\n"
        "except tenon.DeviceError as error:\n    print(error)\n"
    )
    environment = os.environ | {"TENON_ONNXRUNTIME": path}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert text in ran.stdout and "pip install onnxruntime" in ran.stdout
