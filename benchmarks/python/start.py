# SPDX-License-Identifier: Apache-2.0
"""What a library costs before it computes anything: time and memory of its import, files, size on disk.

    python start.py [--rounds 21] [--peers numpy,torch] [--install build/release] [--json results.json]

Every import runs in a fresh interpreter; the libraries take turns, and what an empty interpreter takes
is subtracted. Files are in the page cache. Sizes are those of an installation: Tenon's by
`cmake --install`, stripped, with its Python files; a wheel is a zip of that.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

from _protocol import Times, interleave
from _report import PACKAGES, Report, parser, peers

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIRST_OPERATION = {
    "tenon": "import tenon; tenon.ones(1) + 1",
    "numpy": "import numpy; numpy.ones(1) + 1",
    "torch": "import torch; torch.ones(1) + 1",
    "paddle": "import paddle; paddle.ones((1,)) + 1",
    "jax": "import jax; jax.numpy.ones(1) + 1",
    "onnxruntime": "import onnxruntime",  # it has no operators, only graphs
}
INSPECTION = """
import json, resource
def shared_objects():
    with open("/proc/self/maps") as file:
        return {line.split(None, 5)[-1].strip() for line in file if ".so" in line}
def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))
empty, memory = shared_objects(), resident()
exec(CODE)
print(json.dumps([sorted(shared_objects() - empty), resident() - memory]))
"""


def run(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def less_empty(times: Times) -> Times:
    """Each round less the best that an empty interpreter took: other work only makes ratios worse."""
    empty = min(times.rounds.pop(""))
    rounds = {name: [value - empty for value in values] for name, values in times.rounds.items()}
    return Times(rounds, times.clean, times.foreign)


def import_times(report: Report, codes: dict[str, str], rounds: int) -> None:
    """Imports of a second are timed in fewer rounds, beside Tenon's again."""
    fast = [name for name in codes if name in ("tenon", "numpy", "onnxruntime")]
    slow = ["tenon", *(name for name in codes if name not in fast)]
    for case, wrap in (("import", lambda name: f"import {name}"), ("first operation", codes.get)):
        few = max(3, rounds // 5)
        for names, number, label in ((fast, rounds, case), (slow, few, f"{case}, fewer rounds")):
            contestants = {name: functools.partial(run, wrap(name)) for name in names}
            times = interleave({**contestants, "": lambda: run("pass")}, number, turn=0)
            if len(names) > 1:
                report.add(label, less_empty(times), group="time, less an empty interpreter's")


def loaded(report: Report, codes: dict[str, str]) -> None:
    """Shared objects and memory after the import and after the first operation."""
    for case, wrap in (("import", lambda name: f"import {name}"), ("first operation", codes.get)):
        answers = {name: json.loads(run(f"CODE = {wrap(name)!r}\n{INSPECTION}")) for name in codes}
        counts = {name: len(files) for name, (files, _) in answers.items()}
        memory = {name: resident / 1e6 for name, (_, resident) in answers.items()}
        report.figures(f"shared objects, {case}", counts, "files", "loaded")
        report.figures(f"resident memory, {case}", memory, "MB", "loaded")
        names = [os.path.basename(file) for file in answers["tenon"][0]]
        report.data.setdefault("tenon_files", {})[case] = names
        print("    " + ", ".join(name for name in names if "tenon" in name or "_core" in name))


def tree_size(folder: pathlib.Path) -> int:
    files = (file for file in folder.rglob("*") if "__pycache__" not in file.parts)
    return sum(file.stat().st_size for file in files if file.is_file() and not file.is_symlink())


def peer_size(library: str) -> int:
    """Bytes of the files of its distribution, without those that it depends on."""
    files = importlib.metadata.files(PACKAGES.get(library, library)) or []
    paths = [file.locate() for file in files if "__pycache__" not in str(file)]
    return sum(os.path.getsize(path) for path in paths if os.path.exists(path))


def sizes(report: Report, build: pathlib.Path) -> None:
    installed = {name: peer_size(name) / 1e6 for name in report.columns[1:]}
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder, "tenon")
        command = ["cmake", "--install", str(build), "--prefix", str(prefix), "--strip"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        package = ROOT / "python_bindings" / "tenon"
        extension = next((build / "python" / "tenon").glob("_core*.so"))
        for file in (*package.rglob("*.py"), *package.rglob("*.pyi")):
            copy(file, prefix / file.relative_to(package))
        copy(extension, prefix / extension.name)
        subprocess.run(["strip", str(prefix / extension.name)], check=True)
        installed["tenon"] = tree_size(prefix) / 1e6
        wheel = {"tenon": zipped(prefix, pathlib.Path(folder, "wheel.zip")) / 1e6}
        report.figures("installed, without dependencies", installed, "MB", "size on disk")
        report.figures("wheel", wheel, "MB", "size on disk")
        for library in sorted(prefix.rglob("*.so*")):
            if library.is_file() and not library.is_symlink():
                size = library.stat().st_size / 1e6
                report.figures(library.name, {"tenon": size}, "MB", "size on disk")


def copy(source: pathlib.Path, target: pathlib.Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())


def zipped(folder: pathlib.Path, target: pathlib.Path) -> int:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in folder.rglob("*"):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return target.stat().st_size


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--install", default=ROOT / "build/release", type=pathlib.Path)
    options = options.parse_args()
    report = Report("start", options)
    codes = {name: FIRST_OPERATION[name] for name in ("tenon", *peers(options))}
    rounds = min(options.rounds, 7) if options.quick else options.rounds
    if report.selects("import"):
        import_times(report, codes, rounds)
    if report.selects("loaded"):
        loaded(report, codes)
    if report.selects("size"):
        sizes(report, options.install)
    report.close()


if __name__ == "__main__":
    main()
