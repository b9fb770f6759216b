# SPDX-License-Identifier: Apache-2.0
"""Snippets of pages that are no guides: each runs with what its page speaks of in place."""

import ast
import os
import subprocess
import sys

import pytest
from guide import BUILD, blocks
from tenon.utils.cpp_extension import is_build_available

FASTCPU = f"{BUILD}/tests/plugins/libraries/libtenon_fastcpu.so"
LEVEL1 = f"{BUILD}/tests/primitives/libtenon_level1.so"
REFERENCE = f"{BUILD}/conformance/reference/libtenon_reference.so"
STANDIN = f"{BUILD}/tests/compat/paddle_device/libraries/libstandin.so"


def python_blocks(page, count):
    found = [text for language, text in blocks(page) if language == "python"]
    assert len(found) == count
    return found


def run(program, folder="."):
    """What a program prints, in a process of its own, which finds modules where this one does."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{program}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize(
    "page",
    [
        "array_api.md",
        "compat_namespaces.md",
        "distributed.md",
        "dtypes.md",
        "func.md",
        "parameter_server.md",
        "quantization.md",
        "random.md",
        "serving.md",
        "sparse.md",
    ],
)
def test_pages_about_python(page):
    """The programs of a page, one after the other in one process."""
    run("\n".join(text for language, text in blocks(page) if language == "python"))


def test_a_predictor(tmp_path):
    # The same process may not load what it saved; the other programs are another one's.
    _, signature, packed = [run(each, tmp_path) for each in python_blocks("inference.md", 3)]
    assert "(x: float32[batch, 8]) -> (scores: float32[batch, 3])" in signature
    assert "results take at most" in packed


def test_an_operator_file(tmp_path):
    page = blocks("operator_files.md", "yaml")
    (tmp_path / "acme.yaml").write_text(page[0][1])
    (snippet,) = python_blocks("operator_files.md", 1)
    prelude = "import tenon\nx = y = tenon.tensor([0.0, 1.0], requires_grad=True)\n"
    check = "tenon.ops.acme.swiglu(x, y).sum().backward()\nprint(x.grad.tolist()[0])"
    assert run(prelude + snippet + check, tmp_path) == "0.0\n"


@pytest.mark.skipif(not os.path.exists(FASTCPU), reason="TENON_BUILD_DIR is not set")
def test_explaining_an_override():
    snippet, _ = python_blocks("overrides.md", 2)
    command, _, shown = snippet.partition("\n")
    printed = run(f"import tenon\ntenon.load_plugin({FASTCPU!r})\n{command.removeprefix('>>> ')}")
    printed, at = "".join(printed.split()), 0
    for part in "".join(shown.split()).split("..."):
        part = part.strip(",")
        assert part in printed[at:]
        at = printed.index(part, at) + len(part)


@pytest.mark.skipif(not os.path.exists(FASTCPU), reason="TENON_BUILD_DIR is not set")
def test_autotuning():
    (snippet,) = python_blocks("autotuning.md", 1)
    prelude = f"""
import tenon
tenon.load_plugin({os.path.abspath(FASTCPU)!r})
tenon.plugins.allow_overrides("fastcpu")
model, x = tenon.nn.ReLU(), tenon.ones(4, 2)
"""
    (decision,) = ast.literal_eval(
        run(prelude + snippet + "print(tenon.autotune.report()['decisions'])")
    )
    assert decision["op"] == "tenon::relu"


def run_file(folder, blocks):
    """What a page's programs print as one file: functions are rewritten where they have a source."""
    program = folder / "program.py"
    program.write_text("\n".join(blocks))
    return run(f"import runpy, tenon\ntenon.manual_seed(0)\nrunpy.run_path({str(program)!r})")


def test_programs(tmp_path):
    first, step, frozen = python_blocks("graphs.md", 3)
    step += "assert loss.item() < 0.1\n"
    frozen += 'assert "constant %1" in str(program)\n'
    assert "= tenon::linear(%0, %1, %2)" in run_file(tmp_path, [first, step, frozen])


def test_compiled_functions(tmp_path):
    printed = run_file(tmp_path, python_blocks("compiled_functions.md", 3))
    assert "(float32[3, 4]): 3 calls, a program of" in printed
    assert "which Python runs, because of item()" in printed
    assert printed.count("a part:") == 2
    assert "([size0, 4]), size0 from 2 to 64: 3 calls, a program of these sizes" in printed


def test_control_flow(tmp_path):
    model, settle, loop, sizes = python_blocks("control_flow.md", 4)
    settle += """
for value in (x, x * 9, -x * 100):
    got, want = settled(value), settle(value)
    assert (got[0] == want[0]).all() and got[1].item() == want[1]
"""
    loop += "assert (halve(x * 4) == normalise(x * 4)).all()\n"
    sizes += 'assert "float32[batch, 4]" in str(program)\n'
    run_file(tmp_path, [model, settle, loop, sizes])


def test_rewrites(tmp_path):
    model, attention, rewrite = python_blocks("rewrites.md", 3)
    printed = run_file(tmp_path, [model, attention, rewrite])
    shown = [text for _, text in blocks("rewrites.md", "text") if text.startswith("softmax: ")]
    changes = [line.split(" at ")[0] for line in shown[0].splitlines()]
    assert [line.split(" at ")[0] for line in printed.strip().splitlines()] == changes


def test_passes_written_in_python(tmp_path):
    printed = run_file(tmp_path, python_blocks("program_graphs.md", 3))
    shown = [text for _, text in blocks("program_graphs.md", "text")]
    assert printed.split() == "".join(shown).split()


def test_validation():
    _, snippet = python_blocks("overrides.md", 2)
    run(f"import tenon\nmodel, x = tenon.nn.Linear(2, 3), tenon.ones(4, 2)\n{snippet}")


@pytest.mark.skipif(not os.path.exists(STANDIN), reason="TENON_BUILD_DIR is not set")
def test_a_device_plugin_for_paddle():
    snippet, _ = python_blocks("paddle_compat.md", 2)
    path = "build/python/paddle_custom_device/libpaddle-custom-cpu.so"
    assert path in snippet
    printed = run(snippet.replace(path, STANDIN).replace("custom_cpu", "standin"))
    assert "softmax" in printed and "standin" in printed


@pytest.mark.skipif(not os.path.exists(LEVEL1), reason="TENON_BUILD_DIR is not set")
def test_an_isolated_plugin():
    (snippet,) = python_blocks("isolated.md", 1)
    snippet = snippet.replace("/opt/acme/libtenon_acme.so", os.path.abspath(LEVEL1))
    snippet = snippet.replace("acme", "level1")
    assert "level1" in run(f"import tenon\n{snippet}\nprint(x.device)")


@pytest.mark.skipif(not os.path.exists(REFERENCE), reason="TENON_BUILD_DIR is not set")
def test_a_recorded_graph():
    (snippet,) = python_blocks("runtime.md", 1)
    prelude = f"""
import tenon
tenon.load_plugin({os.path.abspath(REFERENCE)!r})
x = tenon.zeros(2, device="reference")
batch = tenon.tensor([1.0, 2.0], device="reference")
step = lambda x: x * 2.0
"""
    printed = run(prelude + snippet.replace("acme", "reference") + "\nprint(loss.cpu().tolist())")
    assert printed == "[2.0, 4.0]\n"


CUSTOM_RELU = """
#include "paddle/extension.h"

std::vector<paddle::Tensor> Forward(const paddle::Tensor& x) { return {paddle::relu(x)}; }
std::vector<paddle::Tensor> Backward(const paddle::Tensor& x, const paddle::Tensor& grad_out) {
  return {paddle::where(x > 0.0, grad_out, paddle::zeros_like(x))};
}
PD_BUILD_OP(custom_relu).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(Forward));
PD_BUILD_GRAD_OP(custom_relu)
    .Inputs({"X", paddle::Grad("Out")})
    .Outputs({paddle::Grad("X")})
    .SetKernelFn(PD_KERNEL(Backward));
"""


@pytest.mark.skipif(not is_build_available(), reason="no C++ compiler")
def test_a_custom_operator_for_paddle(tmp_path, monkeypatch):
    monkeypatch.setenv("TENON_PLUGIN_TRUST", "any")  # temporary folders lie in /tmp
    (tmp_path / "custom_relu.cc").write_text(CUSTOM_RELU)
    _, snippet = python_blocks("paddle_compat.md", 2)
    snippet = snippet.replace("-O3", "-O0").replace(
        'sources=["custom_relu.cc"]', 'sources=["custom_relu.cc"], build_directory="build"'
    )
    assert run(snippet + "print(x.grad.tolist())", tmp_path) == "[0.0, 1.0]\n"


def test_linear_algebra():
    (snippet,) = python_blocks("linalg.md", 1)
    assert "(5,)" in run(snippet)


def test_mixed_precision():
    run("\n".join(python_blocks("amp.md", 6)))


def test_the_profiler(tmp_path):
    run("\n".join(python_blocks("profiler.md", 4)), tmp_path)


def test_data():
    # A program on the command line has no file from which spawned workers could import its classes.
    prelude = "import multiprocessing\nmultiprocessing.set_start_method('fork')\n"
    run(prelude + "\n".join(python_blocks("data.md", 6)))


def test_training_with_a_few_calls(tmp_path):
    """Also a second time in the folder that the first has written to."""
    program = "\n".join(python_blocks("high_level.md", 9))
    table = blocks("high_level.md", "text")[0][1]
    for _ in range(2):
        printed = run(program, tmp_path)
        assert table in printed
        assert "4 tensors loaded" in printed


def test_training():
    program = "\n".join(python_blocks("training.md", 6))
    assert 0.0 < float(run(program)) <= 1.0


def test_distributions():
    printed = run("\n".join(python_blocks("distributions.md", 4)))
    assert (
        "Normal: expected parameter scale to be numbers above 0, got -1.0 at index [1]" in printed
    )


def test_domain_libraries():
    printed = run("\n".join(python_blocks("domains.md", 7)))
    assert printed.startswith("(1, 10)\n")


def test_operators_of_models():
    assert run("\n".join(python_blocks("model_operators.md", 10))) == ""
