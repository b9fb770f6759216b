# SPDX-License-Identifier: Apache-2.0
"""Damaged models of ONNX: each raises an error or loads, and the process lives.

    PYTHONPATH=build/release/python .venv/bin/python -m tests.fuzz.onnx_models --minutes 5 [--seed 1] [--corpus FOLDER]

Models are changed as bytes and as messages: fields dropped, repeated, swapped and taken from other models, numbers and names
replaced. They are loaded in a process of its own, and those that load run on zeros. What ends that process, takes longer than
ten seconds of a processor or raises an error of another kind is written to --out, by which it can be loaded again. Run it on a build
with AddressSanitizer to see more.
"""

from __future__ import annotations

import argparse
import copy
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 10  # of a processor, that a model may take
PATIENCE = 300  # seconds of the clock, in which a busy machine gives these
GIBIBYTES = 24  # of addresses, which a sanitizer reserves and no program uses
NUMBERS = (
    0,
    1,
    2,
    3,
    7,
    16,
    28,
    63,
    64,
    127,
    128,
    255,
    65536,
    2**31 - 1,
    2**31,
    2**40,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
Tree = list[tuple[int, "int | bytes | Tree"]]


def seeds() -> list[bytes]:
    """Small models of many kinds of nodes."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "onnx"))
    import numpy as np
    from messages import function, graph, local, ml, model, node, value
    from tenon.onnx.protobuf import field

    f32 = np.float32
    x = [value("x", "float32", [1, 2, 4, 4])]
    body = graph(
        [node("Add", ["v", "v"], ["d"]), node("Identity", ["g"], ["h"])],
        [value("i", "int64"), value("g", "bool"), value("v", "float32", [1, 2, 4, 4])],
        ["h", "d"],
    )
    flag = [*x, value("flag", "bool", [])]
    words = {"t": np.array(["to be", "or not", "1.5"], object)}
    tree = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [1, 0, 0],
        "nodes_values": [0.5, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
    }
    rows, of_ml = [value("r", "float32", [3, 2])], {"opsets": {"ai.onnx.ml": 3}}
    learned = [
        model(
            [
                node("StringSplit", ["t"], ["p", "n"], delimiter=" ", maxsplit=2),
                node("StringConcat", ["p", "p"], ["c"]),
                node("RegexFullMatch", ["c"], ["y"], pattern="(?i)(t|[^b-d]o?)+\\w{1,3}|a*?"),
            ],
            [],
            ["y", "n"],
            words,
        ),
        model(
            [
                node(
                    "StringNormalizer", ["t"], ["s"], case_change_action="UPPER", stopwords=["1.5"]
                ),
                node(
                    "TfIdfVectorizer",
                    ["s"],
                    ["y"],
                    max_gram_length=2,
                    max_skip_count=1,
                    min_gram_length=1,
                    mode="TF",
                    ngram_counts=[0, 1],
                    ngram_indexes=[0, 1],
                    pool_strings=["TO BE", "TO BE", "OR NOT"],
                ),
            ],
            [],
            ["y"],
            words,
        ),
        model(
            [
                ml(
                    "TreeEnsembleClassifier",
                    ["r"],
                    ["l", "y"],
                    classlabels_strings=["a", "b", "c"],
                    class_treeids=[0, 0],
                    class_nodeids=[1, 2],
                    class_ids=[0, 2],
                    class_weights=[1.0, 0.5],
                    **tree,
                ),
                ml("LabelEncoder", ["l"], ["z"], keys_strings=["a", "c"], values_floats=[1.0, 2.0]),
            ],
            rows,
            ["y", "z"],
            **of_ml,
        ),
        model(
            [
                ml("Scaler", ["r"], ["s"], offset=[1.0, 2.0], scale=[0.5]),
                ml(
                    "SVMClassifier",
                    ["s"],
                    ["l", "y"],
                    classlabels_ints=[1, 2],
                    coefficients=[1.0, -1.0],
                    kernel_params=[0.5, 0.0, 3.0],
                    kernel_type="RBF",
                    rho=[0.1],
                    support_vectors=[0.0, 1.0, 1.0, 0.0],
                    vectors_per_class=[1, 1],
                ),
                ml("OneHotEncoder", ["l"], ["z"], cats_int64s=[2, 1]),
            ],
            rows,
            ["y", "z"],
            **of_ml,
        ),
    ]
    training = "ai.onnx.preview.training"
    slopes = [
        node("Mul", ["x", "x"], ["s"]),
        node("ReduceSum", ["s"], ["l"], keepdims=0),
        node("Gradient", ["x"], ["g"], xs=["x"], y="l") + field(7, training),
        node("Adagrad", ["l", "k", "x", "g", "s"], ["u", "h"]) + field(7, training),
    ]
    steps = {"k": np.array(1)}
    return [
        *learned,
        model(slopes, x, ["g", "u"], steps, opsets={training: 1}),
        model(
            [*slopes[:3], node("Gradient", ["x"], ["y"], xs=["x"], y="g") + field(7, training)],
            x,
            ["y"],
            opsets={training: 1},
        ),
        model(
            [
                node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
                node("MaxPool", ["a"], ["y"], kernel_shape=[2, 2]),
            ],
            x,
            ["y"],
            {"w": np.ones((3, 2, 3, 3), f32)},
        ),
        model(
            [node("Reshape", ["x", "s"], ["a"]), node("Softmax", ["a"], ["y"], axis=1)],
            x,
            ["y"],
            {"s": np.array([2, -1])},
        ),
        model(
            [node("Slice", ["x", "b", "e", "k"], ["y"])],
            x,
            ["y"],
            {"b": np.array([0]), "e": np.array([1]), "k": np.array([2])},
        ),
        model(
            [node("Resize", ["x", "", "s"], ["y"], mode="linear")],
            x,
            ["y"],
            {"s": np.array([1, 1, 2, 0.5], f32)},
        ),
        model(
            [
                node(
                    "If",
                    ["flag"],
                    ["y"],
                    then_branch=graph([node("Neg", ["x"], ["n"])], [], ["n"]),
                    else_branch=graph([node("Abs", ["x"], ["p"])], [], ["p"]),
                )
            ],
            flag,
            ["y"],
        ),
        model(
            [node("Loop", ["m", "flag", "x"], ["y"], body=body)], flag, ["y"], {"m": np.array(3)}
        ),
        model([node("Loop", ["", "flag", "x"], ["y"], body=body)], flag, ["x"]),
        model(
            [
                node(
                    "Scan",
                    ["x"],
                    ["y"],
                    body=graph(
                        [node("Neg", ["e"], ["o"])], [value("e", "float32", [2, 4, 4])], ["o"]
                    ),
                    num_scan_inputs=1,
                )
            ],
            x,
            ["y"],
        ),
        model(
            [local("F", ["x"], ["y"])],
            x,
            ["y"],
            functions=[function("F", ["a"], ["b"], [node("Relu", ["a"], ["b"])])],
            opsets={"local": 1},
        ),
        model(
            [node("LSTM", ["q", "w", "r"], ["y"], hidden_size=2)],
            [value("q", "float32", [3, 1, 2])],
            ["y"],
            {"w": np.ones((1, 8, 2), f32), "r": np.ones((1, 8, 2), f32)},
        ),
        model(
            [
                node("QuantizeLinear", ["x", "s", "z"], ["q"]),
                node("DequantizeLinear", ["q", "s", "z"], ["y"]),
            ],
            x,
            ["y"],
            {"s": np.array(0.5, f32), "z": np.array(3, np.uint8)},
        ),
        model(
            [
                node("SplitToSequence", ["x"], ["l"], axis=2),
                node("ConcatFromSequence", ["l"], ["y"], axis=1),
            ],
            x,
            ["y"],
        ),
        model([node("Einsum", ["x", "x"], ["y"], equation="abcd,abed->abce")], x, ["y"]),
        model(
            [node("NonMaxSuppression", ["o", "s", "m"], ["y"])],
            [],
            ["y"],
            {"o": np.ones((1, 3, 4), f32), "s": np.ones((1, 1, 3), f32), "m": np.array([2])},
        ),
        model(
            [node("TopK", ["x", "k"], ["y", "z"]), node("OneHot", ["z", "d", "v"], ["w"])],
            x,
            ["w"],
            {"k": np.array([2]), "d": np.array(4), "v": np.array([0, 1], f32)},
        ),
        model(
            [node("Range", ["a", "b", "c"], ["r"]), node("Tile", ["r", "t"], ["y"])],
            [],
            ["y"],
            {"a": np.array(0), "b": np.array(9), "c": np.array(2), "t": np.array([3])},
        ),
    ]


def tree_of(data: bytes, depth: int = 0) -> Tree | None:
    """The fields of a message, with messages in them; None: it is none."""
    from tenon.onnx import protobuf

    tree: Tree = []
    try:
        for tag, value in protobuf.fields(data):
            if isinstance(value, int):
                tree.append((tag, value))
                continue
            inner = tree_of(bytes(value), depth + 1) if depth < 8 and len(value) > 1 else None
            tree.append((tag, inner if inner and tag < 40 else bytes(value)))
    except ValueError:
        return None
    return tree


def bytes_of(tree: Tree) -> bytes:
    from tenon.onnx import protobuf

    parts = [(tag, bytes_of(value) if isinstance(value, list) else value) for tag, value in tree]
    return b"".join(protobuf.field(tag, value) for tag, value in parts)


def nodes_of(tree: Tree) -> list[Tree]:
    found = [tree]
    for _, value in tree:
        if isinstance(value, list):
            found += nodes_of(value)
    return found


def changed(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    tree = tree_of(data) if rng.random() < 0.8 else None
    if tree is None:
        return damaged(data, rng)
    other = tree_of(rng.choice(others)) or []
    for _ in range(rng.randint(1, 4)):
        message = rng.choice(nodes_of(tree))
        if not message:
            continue
        at = rng.randrange(len(message))
        tag, value = message[at]
        match rng.randrange(7):
            case 0:
                del message[at]
            case 1:
                message.insert(rng.randrange(len(message) + 1), copy.deepcopy(message[at]))
            case 2:
                message[at] = (rng.randint(1, 26), value)
            case 3:
                source = rng.choice(nodes_of(other))
                if source:
                    message.insert(at, copy.deepcopy(rng.choice(source)))
            case 4:
                back = rng.randrange(len(message))
                message[at], message[back] = message[back], message[at]
            case _:
                message[at] = (tag, other_value(value, rng))
    return bytes_of(tree)


def other_value(value: int | bytes | Tree, rng: random.Random) -> int | bytes | Tree:
    if isinstance(value, int):
        return rng.choice(
            (rng.choice(NUMBERS), max(0, value + rng.randint(-2, 2)), 2**64 - rng.randint(1, 9))
        )
    if isinstance(value, list):
        return []
    return damaged(value, rng) if value else rng.randbytes(rng.randint(0, 9))


def damaged(data: bytes, rng: random.Random) -> bytes:
    array = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(array) + 1)
        match rng.randrange(4):
            case 0 if at < len(array):
                array[at] = rng.randrange(256)
            case 1:
                del array[at : at + rng.randint(1, 9)]
            case 2:
                array[at:at] = rng.randbytes(rng.randint(1, 9))
            case _:
                array[at:at] = array[at : at + rng.randint(1, 64)]
    return bytes(array)


# -- the process that loads -----------------------------------------------------------------------------------


def serve() -> None:
    """Loads the file that each line names; a line back says what became of it."""
    import resource

    import tenon
    import tenon.onnx

    if "libasan" not in Path("/proc/self/maps").read_text():  # which reserves more than any limit
        resource.setrlimit(resource.RLIMIT_AS, (GIBIBYTES << 30, GIBIBYTES << 30))
    tenon.set_num_threads(1)
    allowed = (
        ValueError,
        TypeError,
        IndexError,
        NotImplementedError,
        OverflowError,
        MemoryError,
        RuntimeError,
    )
    for line in sys.stdin:
        try:
            data = Path(line.strip()).read_bytes()
            inputs = tenon.onnx.describe(data)["inputs"]
            program = tenon.onnx.load(data)
            given = [
                tenon.zeros(each["shape"], dtype=getattr(tenon, each["dtype"])) for each in inputs
            ]
            if sum(each.numel() for each in given) < 1 << 20:
                program(*given)
            said = "loaded"
        except allowed as error:
            said = f"refused {type(error).__name__}"
        except Exception as error:
            said = f"raised {type(error).__name__}: {error}".replace("\n", " ")
        print(said, flush=True)


def processor_seconds(process: int) -> float:
    """That a process has used; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Loader:
    """A process that runs `serve` of a module."""

    def __init__(self, module: str = "tests.fuzz.onnx_models") -> None:
        self._module = module
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", self._module, "--serve"]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def load(self, path: Path) -> str:
        import select

        process = self.process
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        begin, clock = processor_seconds(process.pid), time.monotonic()
        while not select.select([process.stdout], [], [], 1)[0]:
            taken, waited = processor_seconds(process.pid) - begin, time.monotonic() - clock
            if taken > SECONDS or waited > PATIENCE:
                process.kill()
                process.wait()
                self.start()
                return f"took {taken:.0f} seconds of a processor in {waited:.0f} of the clock"
        line = process.stdout.readline()
        if line:
            return line.strip()
        errors = process.stderr.read()
        code = process.wait()
        self.start()
        return f"ended the process ({code}): {errors[-2000:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--corpus", help="a folder with more models")
    parser.add_argument(
        "--out", default="build/fuzz-onnx", help="where models that fail are written"
    )
    options = parser.parse_args()
    if options.serve:
        serve()
        return 0
    rng = random.Random(options.seed)
    corpus = seeds()
    if options.corpus:
        files = sorted(Path(options.corpus).rglob("*.onnx"))
        corpus += [file.read_bytes() for file in files if file.stat().st_size < 1 << 16]
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    loader, counts, failures = Loader(), {"loaded": 0, "refused": 0}, 0
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        while time.monotonic() < end:
            data = changed(rng.choice(corpus), corpus, rng)
            path.write_bytes(data)
            said = loader.load(path)
            kind = said.split()[0]
            if kind in counts:
                counts[kind] += 1
                continue
            failures += 1
            saved = out / f"{options.seed}-{failures}.onnx"
            saved.write_bytes(data)
            print(f"{saved}: {said}", flush=True)
    print(f"{counts['loaded']} loaded, {counts['refused']} refused, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
