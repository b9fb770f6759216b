# SPDX-License-Identifier: Apache-2.0
"""Trained models one image, or one text, at a time: predictors beside ONNX Runtime and OpenVINO.

    python inference.py [--quick] [--threads 1] [--rounds 5] [--only resnet50] [--clock cpu] [--json results.json]

The models of the package `onnx` (light_*: their weights are filled, not held), and those that PyTorch, timm and transformers make
of random weights and export; what is not installed is left out. Each library has a process of its own, in which it loads the
model and runs it again and again, so that none evicts another's weights from the caches; libraries take turns, and the best of
the rounds counts. Results are compared before anything is timed. On a machine that others use, too, `--clock cpu` takes the time
of processors, of all threads, instead of the clock's.

The columns: milliseconds of a run, and of loading to the first result; MiB of the process's memory that loading and running added,
as far as it is not in files. Ratios below 1 say that Tenon is faster. "tenon fast" has numerics="fast".
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

LIBRARIES = ("tenon", "tenon fast", "onnxruntime", "openvino")
TOLERANCE = 2e-3  # of the largest result
LIGHT = ("resnet50", "squeezenet", "densenet121", "shufflenet", "inception_v1")


def timm_model(name: str):
    def make():
        import timm

        return timm.create_model(name), ((1, 3, 224, 224), "float32")

    return "timm", make


def bert():
    import torch
    import transformers

    model = transformers.BertModel(transformers.BertConfig(), add_pooling_layer=False)

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids):
            return self.model(input_ids=ids).last_hidden_state

    return Encoder(), ((1, 128), "int64")


EXPORTED = {
    "resnet18": timm_model("resnet18"),
    "mobilenetv3_large": timm_model("mobilenetv3_large_100"),
    "efficientnet_b0": timm_model("efficientnet_b0"),
    "vit_tiny": timm_model("vit_tiny_patch16_224"),
    "bert_base_128": ("transformers", bert),
}


def light_path(name: str) -> Path | None:
    found = importlib.util.find_spec("onnx")
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent / f"backend/test/data/light/light_{name}.onnx"
    return path if path.exists() else None


def export(name: str, folder: Path) -> Path:
    """In a process of its own, whose memory is not the benchmark's."""
    path = folder / f"{name}.onnx"
    if not path.exists():
        done = subprocess.run(
            [sys.executable, __file__, "--export", name, str(path)], capture_output=True, text=True
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return path


def export_here(name: str, path: str) -> None:
    import torch

    torch.manual_seed(0)
    model, (shape, dtype) = EXPORTED[name][1]()
    x = torch.zeros(shape, dtype=getattr(torch, dtype))
    torch.onnx.export(model.eval(), (x,), path, input_names=["x"], opset_version=18, dynamo=True, external_data=False)  # fmt: skip


# -- the process of a library --------------------------------------------------------------------------------------


def anonymous_kilobytes() -> int:
    """Of this process: memory that is in no file. What a file holds is shared and can be dropped."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    return 0


def inputs_of(path: str) -> dict[str, np.ndarray]:
    import onnx

    made = {}
    numbers = np.random.default_rng(0)
    graph = onnx.load(path, load_external_data=False).graph
    held = {each.name for each in graph.initializer}
    for value in graph.input:
        if value.name in held:
            continue
        kind = value.type.tensor_type
        shape = [size.dim_value or 1 for size in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        is_integer = np.issubdtype(dtype, np.integer)
        drawn = numbers.integers(0, 1000, shape) if is_integer else numbers.random(shape)
        made[value.name] = drawn.astype(dtype)
    return made


def load_tenon(path: str, threads: int, numerics: str, inputs: dict):
    import tenon

    tenon.set_num_threads(threads)
    shapes = ";".join(f"{name}={'x'.join(map(str, x.shape))}" for name, x in inputs.items())
    predictor = tenon.inference.Predictor(path, numerics=numerics, shapes=shapes)
    given = {name: tenon.from_numpy(x) for name, x in inputs.items()}
    return lambda: [value.numpy() for value in predictor.run(given).values()]


def load_onnxruntime(path: str, threads: int, inputs: dict):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def load_openvino(path: str, threads: int, inputs: dict):
    import openvino

    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    model = core.read_model(path)
    model.reshape({name: x.shape for name, x in inputs.items()})
    request = core.compile_model(model, "CPU", settings).create_infer_request()
    return lambda: list(request.infer(inputs).values())


def serve(library: str, path: str, threads: int) -> None:
    """Loads a model, then answers lines: a number of runs, by the times of each."""
    inputs = inputs_of(path)
    answer, sys.stdout = sys.stdout, sys.stderr  # libraries print, too
    if library.startswith("tenon"):
        import tenon  # noqa: F401 - importing is not loading
    else:
        importlib.import_module(library)
    before, begin = anonymous_kilobytes(), time.perf_counter()
    if library.startswith("tenon"):
        numerics = "fast" if library == "tenon fast" else "exact"
        run = load_tenon(path, threads, numerics, inputs)
    else:
        run = globals()[f"load_{library}"](path, threads, inputs)
    results = run()
    first = time.perf_counter() - begin
    for _ in range(3):
        run()
    np.savez(f"{path}.{library}.npz", *results)
    hello = {"first": first, "megabytes": (anonymous_kilobytes() - before) / 1024}
    print(json.dumps(hello), file=answer, flush=True)
    for line in sys.stdin:
        clock = time.process_time if line.startswith("cpu") else time.perf_counter
        times = []
        for _ in range(int(line.split()[1])):
            start = clock()
            run()
            times.append(clock() - start)
        print(json.dumps(times), file=answer, flush=True)


class Library:
    def __init__(self, name: str, path: Path, threads: int):
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "TENON_NUM_THREADS": str(threads)}  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", name, str(path), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise RuntimeError(self.process.stderr.read().strip().splitlines()[-1])
        self.hello = json.loads(line)
        with np.load(f"{path}.{name}.npz") as made:
            self.results = [made[key] for key in made.files]
        os.remove(f"{path}.{name}.npz")
        self.best = float("inf")

    def run(self, clock: str, count: int) -> None:
        print(clock, count, file=self.process.stdin, flush=True)
        self.best = min(self.best, *json.loads(self.process.stdout.readline()))

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def difference(got: list, want: list) -> float:
    """Of the largest element."""
    scale = max(float(np.abs(b).max()) for b in want) or 1.0
    return max(float(np.abs(a - b).max()) for a, b in zip(got, want, strict=True)) / scale


def measure(name: str, path: Path, options: argparse.Namespace, runs: int) -> dict:
    libraries = {}
    row: dict = {"name": name, "libraries": {}}
    try:
        for each in LIBRARIES:
            if not each.startswith("tenon") and importlib.util.find_spec(each) is None:
                continue
            try:
                libraries[each] = Library(each, path, options.threads)
            except RuntimeError as error:
                row["libraries"][each] = {"error": str(error)}
        for _ in range(options.rounds):
            for library in libraries.values():
                library.run(options.clock, runs)
    finally:
        for library in libraries.values():
            library.close()
    reference = libraries.get("onnxruntime")
    for each, library in libraries.items():
        row["libraries"][each] = {"run": library.best, **library.hello}
        if reference:
            row["libraries"][each]["difference"] = difference(library.results, reference.results)
    return row


def print_row(row: dict) -> None:
    own = row["libraries"].get("tenon", {})
    print(f"\n{row['name']}")
    for name, each in row["libraries"].items():
        if "error" in each:
            print(f"  {name:<12} {each['error'][:120]}")
            continue
        ratio = f"{own['run'] / each['run']:.2f}" if name != "tenon" and "run" in own else ""
        wrong = "  RESULTS DIFFER" if each.get("difference", 0) > TOLERANCE else ""
        print(
            f"  {name:<12} run {1e3 * each['run']:8.2f} ms  first {1e3 * each['first']:8.1f} ms  "
            f"memory {each['megabytes']:7.1f} MiB  {ratio}{wrong}",
            flush=True,
        )


def print_means(rows: list[dict]) -> None:
    for ours in LIBRARIES[:2]:
        for name in LIBRARIES[2:]:
            pairs = [
                row["libraries"][ours]["run"] / row["libraries"][name]["run"]
                for row in rows
                if all("run" in row["libraries"].get(each, {}) for each in (ours, name))
            ]
            if pairs:
                mean = float(np.exp(np.mean(np.log(pairs))))
                print(
                    f"{ours} to {name}: geometric mean {mean:.2f}, largest {max(pairs):.2f}, of {len(pairs)} models"
                )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="turns of each library")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--quick", action="store_true", help="fewer models and rounds")
    parser.add_argument("--json", help="write the results to this file")
    options = parser.parse_args()
    if options.quick:
        options.rounds = min(options.rounds, 2)
    rows = []
    folder = Path(tempfile.gettempdir()) / "tenon-inference-models"
    folder.mkdir(exist_ok=True)
    names = [f"light_{name}" for name in LIGHT] + list(EXPORTED)
    for name in names[:2] if options.quick and not options.only else names:
        if options.only not in name:
            continue
        if name.startswith("light_"):
            path = light_path(name.removeprefix("light_"))
            if path:  # beside which results are written
                copied = folder / path.name
                copied.write_bytes(path.read_bytes())
                path = copied
        else:
            path = None
            if importlib.util.find_spec(EXPORTED[name][0]):
                try:
                    path = export(name, folder)
                except RuntimeError as error:
                    print(f"\n{name}: not exported: {error}")
        if path:
            rows.append(measure(name, path, options, runs=3 if options.quick else 10))
            print_row(rows[-1])
    print()
    print_means(rows)
    if options.json:
        Path(options.json).write_text(json.dumps({"benchmark": "inference", "results": rows}))
    return any(
        each.get("difference", 0) > TOLERANCE for row in rows for each in row["libraries"].values()
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    elif sys.argv[1:2] == ["--export"]:
        export_here(sys.argv[2], sys.argv[3])
    else:
        sys.exit(main())
