# SPDX-License-Identifier: Apache-2.0
"""Predictors with `fallback="deny"` on devices that are wrong: the host never computes in their place without a word.

Each device is the reference device with one fault, in a process of its own. What such a process may do: refuse, by an error with a text;
end; or run all steps on the device. TENON_TEST_EXHAUSTIVE=1 tries all of them.
"""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
from reference_plugin import needs_reference

FAULTS = pathlib.Path(os.environ.get("TENON_BUILD_DIR", "build/release")) / (
    "conformance/reference/faults"
)
# Faults of kernels, memory, compilers and of opening: what a predictor meets.
BROKEN = [
    "seam_not_copied", "missing_kernel_internal", "crash_in_kernel", "dtype_lie", "wrong_nan", "writes_input", "ignores_strides",
    "executable_create_fails", "executable_run_fails", "executable_reconsiders", "oom_aborts", "oom_wrong_code", "error_without_text",
    "zero_copy_fails", "misaligned_alloc", "copy_leaks", "lying_struct_size", "note_name_mismatch", "ignores_epoch", "exit_in_open",
    "open_takes_segv", "status_out_of_range", "kind_cpu", "device_renames",
]  # fmt: skip
FEW = ["missing_kernel_internal", "executable_run_fails", "lying_struct_size"]

CHILD = """
    import sys, tenon
    from tenon import inference, nn
    path, model = sys.argv[1:]
    tenon.set_grad_enabled(False)
    tenon.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3))
    program = tenon.export(lambda x: {"y": net(x).exp()}, tenon.rand(2, 8))
    program.freeze().save(model)
    try:
        tenon.load_plugin(path)
        predictor = inference.Predictor(model, device="reference", fallback="deny")
        for _ in range(3):
            y = predictor.run({"x": tenon.rand(2, 8)})["y"]
        where = str(y.device)
    except Exception as error:
        print("refused:", str(error) or type(error).__name__)
        sys.exit(0)
    rows = [row for row in tenon.fallback_report("reference") if row["host"]]
    print("ran on", where, "with host calls:", [(row["op"], row["host"]) for row in rows])
"""


def outcome(fault, folder):
    path = (FAULTS / f"libtenon_fault_{fault}.so").absolute()
    if not path.exists():
        pytest.skip(f"TENON_BUILD_DIR has no {path.name}")  # a target of their own
    environment = {**os.environ, "TENON_FALLBACK": "allow"}
    environment.pop("TENON_TEST_PLUGINS", None)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD), str(path), str(folder / "net.tenon")],
        capture_output=True, text=True, timeout=120, env=environment,
    )  # fmt: skip
    if done.returncode != 0 or not done.stdout.strip():  # a plugin may end the process
        return f"ended with {done.returncode}"
    return done.stdout.strip().splitlines()[-1]


@needs_reference
@pytest.mark.parametrize("fault", BROKEN if os.environ.get("TENON_TEST_EXHAUSTIVE") == "1" else FEW)
def test_the_host_never_computes_silently(fault, tmp_path):
    text = outcome(fault, tmp_path)
    is_loud = text.startswith("ended with") or (
        text.startswith("refused: ") and len(text) > len("refused: ") + 5
    )
    assert is_loud or text == "ran on reference:0 with host calls: []", text
