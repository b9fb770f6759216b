# SPDX-License-Identifier: Apache-2.0
"""tenon.inference.Predictor, and the names of inputs and outputs that programs carry."""

import json
import threading

import numpy as np
import pytest
import reference_plugin
import tenon
from tenon import inference, nn


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """{"scores", "hidden"} of a batch of 1 to 16 rows."""
    tenon.manual_seed(0)
    first, second = nn.Linear(8, 4), nn.Linear(4, 3)

    def forward(x):
        hidden = first(x).relu()
        return {"scores": tenon.softmax(second(hidden), -1), "hidden": hidden}

    with tenon.no_grad():
        program = tenon.export(
            forward, tenon.rand(4, 8), dynamic_shapes=[{0: tenon.Dim("batch", max=16)}]
        )
    file = tmp_path_factory.mktemp("model") / "model.tenon"
    program.freeze().save(file)
    return file


def rows(count):
    return (tenon.arange(count * 8) % 11).to(tenon.float32).reshape(count, 8) / 5 - 1


def test_it_gives_what_the_program_gives(path):
    program = tenon.jit.load(path)
    p = inference.Predictor(path, fallback="deny", warmup=[{"x": (1, 8)}, {"x": (5, 8)}])
    for count in (1, 5, 16):
        expected, got = program(rows(count)), p.run({"x": rows(count)})
        assert list(got) == ["scores", "hidden"]
        for name in got:
            np.testing.assert_array_equal(got[name].numpy(), expected[name].numpy())
    assert repr(p) == (
        "<tenon.inference.Predictor (x: float32[batch, 8]) -> "
        "(scores: float32[batch, 3], hidden: float32[batch, 4])>"
    )
    assert p.inputs["x"] == inference.Value("x", tenon.float32, ("batch", 8))
    assert p.dimensions[0].name == "batch" and p.dimensions[0].max == 16


def test_results_share_no_memory(tmp_path):
    def forward(x):
        y = x.relu()
        return {"a": y, "b": y, "flat": y.reshape(-1), "row": y[0], "twice": y * 2}

    tenon.export(forward, tenon.rand(2, 3)).save(tmp_path / "shared.tenon")
    p = inference.Predictor(tmp_path / "shared.tenon")
    results = p.run({"x": tenon.ones(2, 3)})
    want = {name: value.numpy().copy() for name, value in results.items()}
    for name in results:
        results[name].fill_(7.0)
        for other in results:
            if other != name:
                np.testing.assert_array_equal(results[other].numpy(), want[other])
        want[name][...] = 7.0


def test_results_are_new_and_carry_no_gradients(path):
    p = inference.Predictor(path)
    x = rows(2)
    x.requires_grad = True
    first = p.run({"x": x})["scores"]
    kept = first.numpy().copy()
    second = p.run({"x": rows(3)})["scores"]
    assert not first.requires_grad and second.shape == (3, 3)
    np.testing.assert_array_equal(first.numpy(), kept)
    with tenon.amp.autocast(dtype="bfloat16"):
        inside = p.run({"x": x})["scores"]
    assert inside.dtype == tenon.float32  # the caller's region changes no results
    np.testing.assert_array_equal(inside.numpy(), kept)


def test_results_that_are_inputs_or_weights_are_copies(tmp_path):
    linear = nn.Linear(3, 3)
    with tenon.no_grad():
        program = tenon.export(
            lambda x: {
                "double": x * 2,
                "input": x,
                "flat": x.reshape([-1]),
                "weight": linear.weight,
                "part": linear.bias[1:],
            },
            tenon.ones(2, 3),
        )
    program.save(tmp_path / "x.tenon")
    p, x = inference.Predictor(tmp_path / "x.tenon"), tenon.ones(2, 3)
    clone = p.clone()
    expected = {name: value.tolist() for name, value in p.run({"x": x}).items()}
    for value in p.run({"x": x}).values():
        value.fill_(99.0)
    assert x.tolist() == [[1.0] * 3] * 2
    for each in (p, clone):
        assert {name: value.tolist() for name, value in each.run({"x": x}).items()} == expected


def test_arrays_and_layouts(path):
    p = inference.Predictor(path)
    x = rows(4)
    expected = p.run({"x": x})["scores"].numpy()
    np.testing.assert_array_equal(p.run({"x": x.numpy()})["scores"].numpy(), expected)
    across = x.t().contiguous().t()  # the same elements, column by column
    np.testing.assert_array_equal(p.run({"x": across})["scores"].numpy(), expected)


def test_wrong_calls_say_what_is_wrong(path):
    p = inference.Predictor(path)
    with pytest.raises(ValueError, match="missing 'x'; the program has 'x'"):
        p.run({})
    with pytest.raises(tenon.NotFoundError, match="no input 'y'; the program has 'x'"):
        p.run({"x": rows(1), "y": rows(1)})
    with pytest.raises(TypeError, match=r"expected float32\[batch, 8\], got float64\[1, 8\]"):
        p.run({"x": rows(1).to(tenon.float64)})
    with pytest.raises(ValueError, match=r"got float32\[17, 8\]; batch goes from 1 to 16"):
        p.run({"x": rows(17)})
    assert p.run({"x": rows(1)})["scores"].shape == (1, 3)  # afterwards it goes on


def test_settings(path):
    with pytest.raises(tenon.NotFoundError, match="no key `numeric`; did you mean `numerics`?"):
        inference.Predictor(path, numeric="fast")
    with pytest.raises(NotImplementedError, match="`affinity` is not there yet.*taskset"):
        inference.Predictor(path, affinity="0")
    with pytest.raises(ValueError, match="a number of threads from 1 to 1024.*got '0'"):
        inference.Predictor(path, threads=0)
    with pytest.raises(ValueError, match="`spin_us`: expected with `threads`"):
        inference.Predictor(path, spin_us=10)
    with pytest.raises(ValueError, match="expected 'allow', 'warn' or 'deny', got 'no'"):
        inference.Predictor(path, fallback="no")
    with pytest.raises(tenon.NotFoundError, match="none of the devices is there"):
        inference.Predictor(path, device="nonesuch")
    p = inference.Predictor(path, device=["nonesuch", "cpu"], numerics="fast", profile=True)
    assert p.setting("numerics") == "fast" and p.setting("device") == "cpu:0"
    p.run({"x": rows(1)})
    assert p.profile().startswith("1 runs, ")
    keys = {key.name: key for key in inference.config_keys()}
    assert keys["threads"].is_available and not keys["affinity"].is_available
    assert p.memory()["weights"] > 0 and p.shrink_memory() >= 0


def test_a_dtype_of_lower_precision(path):
    plain, low = inference.Predictor(path), inference.Predictor(path, dtype="bfloat16")
    assert low.inputs == plain.inputs and low.outputs == plain.outputs
    for count in (1, 4, 7):
        expected, got = plain.run({"x": rows(count)}), low.run({"x": rows(count)})
        for name, value in expected.items():
            assert got[name].dtype == tenon.float32 and got[name].shape == value.shape
            np.testing.assert_allclose(got[name].numpy(), value.numpy(), atol=0.02)
    text = low.program()
    assert "constant %1: bfloat16[4, 8]" in text and text.count("cast(") == 3  # none of a weight
    with tenon.no_grad():  # the same as the function in a region
        weights = [value for name, value in tenon.jit.load(path).leaves.items()]
        with tenon.amp.autocast(dtype="bfloat16"):
            hidden = tenon.nn.functional.linear(rows(4), weights[0], weights[1]).relu()
    got = low.run({"x": rows(4)})["hidden"]
    np.testing.assert_array_equal(got.numpy(), hidden.to(tenon.float32).numpy())
    with pytest.raises(ValueError, match="`dtype`: expected '', 'float16' or 'bfloat16'"):
        inference.Predictor(path, dtype="int8")


def test_explain_names_kernels_and_lines(path):
    text = inference.Predictor(path).explain()
    assert "tenon::linear" in text and "cpu:0" in text and "test_inference.py:" in text


def test_hooks(path):
    p = inference.Predictor(path)
    seen = []
    with p.hook(lambda index, name, file, line, results: seen.append((index, name, results))):
        got = p.run({"x": rows(2)})
    assert [name for _, name, _ in seen][0] == "tenon::linear"
    np.testing.assert_array_equal(seen[-1][2][0].numpy(), got["scores"].numpy())

    def fails(*_):
        raise KeyError("mine")

    with p.hook(fails), pytest.raises(KeyError, match="mine"):
        p.run({"x": rows(2)})
    count = len(seen)
    p.run({"x": rows(2)})
    assert len(seen) == count


@pytest.mark.parametrize("settings", [{}, {"threads": 2, "spin_us": 0}])
def test_clones_on_threads_and_one_predictor_on_two(path, settings):
    p = inference.Predictor(path, **settings)
    expected = [p.run({"x": rows(n + 1)})["scores"].numpy() for n in range(4)]
    wrong = []

    def work(n, mine):
        for _ in range(50):
            got = mine.run({"x": rows(n + 1)})["scores"].numpy()
            if not np.array_equal(got, expected[n]):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n, p.clone())) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    inside = []
    with p.hook(lambda *_: inside.append(call_again(p))):
        p.run({"x": rows(1)})
    assert set(inside) == {"at work"}


def call_again(p):
    try:
        p.run({"x": rows(1)})
    except RuntimeError as error:
        return "at work" if "at work" in str(error) else str(error)
    return "ran"


def test_recordings_do_not_hold_it(path):
    p = inference.Predictor(path)
    with pytest.raises(NotImplementedError, match=r"Predictor.run\(\).*tenon.jit.load"):
        tenon.export(lambda x: p.run({"x": x})["scores"], rows(2))


def test_programs_that_write_are_refused(tmp_path):
    weight = tenon.ones(2)

    def step(x):
        tenon.subtract(weight, x * 0.5, out=weight)
        return weight * 1.0

    tenon.export(step, tenon.ones(2)).save(tmp_path / "step.tenon")
    with pytest.raises(RuntimeError, match="writes into its weights or inputs, which clones share"):
        inference.Predictor(tmp_path / "step.tenon")


# -- names ----------------------------------------------------------------------------------------------


class Pair(nn.Module):
    def forward(self, query, *rest, scale=2.0):
        return {"sum": query + rest[0], "parts": [query * scale, rest[1]]}


@pytest.mark.parametrize(
    ("function", "inputs", "input_names", "output_names"),
    [
        (lambda x: x + 1, (tenon.ones(2),), ["x"], ["output_0"]),
        (
            lambda a, b: (a + b, a),
            (tenon.ones(2), tenon.ones(2)),
            ["a", "b"],
            ["output_0", "output_1"],
        ),
        (
            Pair(),
            (tenon.ones(2), tenon.ones(2), tenon.ones(2)),
            ["query", "rest.0", "rest.1"],
            ["sum", "parts.0", "parts.1"],
        ),
        (
            lambda batch: {"y": batch["x"], 3: batch["m"][0]},
            ({"x": tenon.ones(2), "m": [tenon.ones(1)]},),
            ["batch.x", "batch.m.0"],
            ["y", "output_1"],
        ),
        (
            lambda x: {"a.b": x + 1, "a": {"b": x + 2}},
            (tenon.ones(1),),
            ["x"],
            ["output_0", "output_1"],
        ),
        (lambda x: {"output_1": x + 1, "b": x}, (tenon.ones(1),), ["x"], ["output_1", "b"]),
    ],
)
def test_names_of_inputs_and_outputs(tmp_path, function, inputs, input_names, output_names):
    program = tenon.export(function, inputs)
    assert (program.input_names, program.output_names) == (input_names, output_names)
    frozen = program.freeze().optimize(numerics="fast")
    frozen.save(tmp_path / "x.tenon")
    loaded = tenon.jit.load(tmp_path / "x.tenon")
    assert (loaded.input_names, loaded.output_names) == (input_names, output_names)
    assert str(loaded).startswith("tenon.program 2\n") and str(loaded) == str(frozen)


def test_names_may_be_any_text(tmp_path):
    names = ['50% "sure"', "a\\b", "größe, [x] %3 {", "x"]
    program = tenon.export(lambda x: {name: x + i for i, name in enumerate(names)}, tenon.ones(2))
    program.save(tmp_path / "x.tenon")
    assert tenon.jit.load(tmp_path / "x.tenon").output_names == names
    assert program.to_dot().count("-> result") == 4
    outputs = inference.Predictor(tmp_path / "x.tenon").run({"x": tenon.ones(2)})
    assert [value.tolist() for value in outputs.values()] == [[1.0 + i] * 2 for i in range(4)]


def test_formats_of_later_versions_are_refused(tmp_path):
    file = tmp_path / "x.tenon"
    tenon.export(lambda x: x + 1, tenon.ones(2)).save(file)
    contents = file.read_bytes()
    length = int.from_bytes(contents[:8], "little")
    header = json.loads(contents[8 : 8 + length])
    program = header["__metadata__"]["tenon.program"]

    def load(text):
        header["__metadata__"]["tenon.program"] = text
        changed = json.dumps(header).encode()
        file.write_bytes(len(changed).to_bytes(8, "little") + changed + contents[8 + length :])
        return tenon.jit.load(file)

    with pytest.raises(
        ValueError, match="expected a program of format 1 or 2, got one of format 3"
    ):
        load(program.replace("tenon.program 2", "tenon.program 3"))
    with pytest.raises(ValueError, match="expected the end of the line, got '\"x\"'"):
        load(program.replace("tenon.program 2", "tenon.program 1"))
    nameless = program.replace("tenon.program 2", "tenon.program 1").replace(' "x"', "")
    loaded = load(nameless)
    assert loaded.input_names == ["input_0"] and str(loaded) == nameless
    assert loaded(tenon.ones(2)).tolist() == [2.0, 2.0]


# -- devices --------------------------------------------------------------------------------------------


@reference_plugin.needs_reference
def test_it_moves_to_another_device(path):
    reference_plugin.load()
    expected = inference.Predictor(path).run({"x": rows(3)})
    p = inference.Predictor(path, device="reference", fallback="allow")
    assert p.setting("device") == "reference:0"
    got = p.run({"x": rows(3)})
    for name, value in expected.items():
        assert str(got[name].device) == "reference:0"
        np.testing.assert_allclose(got[name].cpu().numpy(), value.numpy(), 1e-5, 1e-6)
    assert "reference:0" in p.explain()


def test_fallbacks(path, capfd):
    deny = pytest.raises(tenon.PolicyError, match="the host would run these steps, with copies:")
    with deny as caught:
        inference.Predictor(path, device="null", fallback="deny")
    lines = str(caught.value).splitlines()
    # Plugins of other tests bring a kernel for the device, which is then one that takes operators apart.
    ops = [
        op
        for op in ("linear", "relu", "linear", "softmax")
        if tenon.explain(op, "null", "float32")["route"] == "host"
    ]
    assert [line.split(" at ")[0].strip() for line in lines[1:-1]] == [
        f"tenon::{op} of float32 on null:0" for op in ops
    ]
    assert "relu" in ops and "test_inference.py:" in lines[1]
    assert "`fallback` is deny; bring kernels" in lines[-1]
    inference.Predictor(path, device="null", fallback="warn")
    assert "the host would run these steps" in capfd.readouterr().err
    with tenon.fallback("allow"):
        p = inference.Predictor(path, device="null", fallback="allow")
        got = p.run({"x": rows(2)})["scores"]
    expected = inference.Predictor(path).run({"x": rows(2)})["scores"]
    np.testing.assert_allclose(
        got.cpu().numpy(), expected.numpy(), rtol=1e-6
    )  # of other steps, then
    assert "the host" in p.explain()


@reference_plugin.needs_reference
def test_what_falls_back_in_a_run_is_found(path, tmp_path):
    reference_plugin.load()
    inference.Predictor(path, device="reference", fallback="deny")  # nothing does
    # An operator that has parts, of which the device has no kernel for one.
    tenon.export(lambda x: tenon.linalg.det(x), tenon.rand(3, 3)).save(tmp_path / "det.tenon")
    with pytest.raises(
        tenon.PolicyError, match=r"on reference:0 the host computed[\s\S]*lu_factor: 2 calls"
    ):
        inference.Predictor(tmp_path / "det.tenon", device="reference", fallback="deny")


# -- commands -------------------------------------------------------------------------------------------


def test_commands(path, tmp_path, capsys):
    from tenon.cli import main

    np.save(tmp_path / "x.npy", rows(2).numpy())
    written = tmp_path / "scores.npy"
    given = ["--input", str(tmp_path / "x.npy"), "--output", f"scores={written}"]
    assert main(["predict", str(path), *given]) == 0
    expected = inference.Predictor(path).run({"x": rows(2)})["scores"].numpy()
    np.testing.assert_array_equal(np.load(written), expected)
    assert main(["predict", str(path), "--input", f"x={tmp_path / 'x.npy'}"]) == 0
    assert "hidden: " in capsys.readouterr().out
    assert main(["explain", str(path)]) == 0
    out = capsys.readouterr().out
    assert "input x: float32[batch, 8]" in out and "tenon::softmax" in out
    assert main(["benchmark", str(path), "--shape", "x=2x8", "--runs", "3", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["runs"] == 3 and 0 < row["fastest_us"] <= row["median_us"]
    assert main(["predict", str(path), "--set", "affinity=0"]) == 1
    assert "`affinity` is not there yet" in capsys.readouterr().err
    assert main(["predict", str(path), "--output", "y=y.npy"]) == 2
    assert "one of the outputs scores, hidden" in capsys.readouterr().err
