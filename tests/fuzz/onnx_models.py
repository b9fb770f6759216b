# SPDX-License-Identifier: Apache-2.0
"""Damaged models of ONNX: each raises an error or loads, and the process lives.

    PYTHONPATH=build/release/python .venv/bin/python -m tests.fuzz.onnx_models --minutes 5 [--seed 1] [--corpus FOLDER]

Models are changed as bytes and as messages: fields dropped, repeated, swapped and taken from other models, numbers and names
replaced. They are loaded in a process of its own, and those that load run on zeros. What ends that process, takes longer than
ten seconds of a processor or raises an error of another kind is written to --out, by which it can be loaded again. Run it on a build
with AddressSanitizer to see more.
"""

from __future__ import annotations

import copy
import random
import sys
from pathlib import Path

from .damaged_files import NUMBERS, REFUSALS, Campaign, arguments, damaged, serve, told

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


def read(path: Path) -> str:
    import tenon
    import tenon.onnx

    data = path.read_bytes()
    inputs = tenon.onnx.describe(data)["inputs"]
    program = tenon.onnx.load(data)
    given = [tenon.zeros(each["shape"], dtype=getattr(tenon, each["dtype"])) for each in inputs]
    if sum(each.numel() for each in given) < 1 << 20:
        program(*given)
    return "loaded"


def main() -> int:
    parser = arguments(str(__doc__), "build/fuzz-onnx")
    parser.add_argument("--corpus", help="a folder with more models")
    options = parser.parse_args()
    if options.serve:
        return serve(read, REFUSALS)
    corpus = seeds()
    if options.corpus:
        files = sorted(Path(options.corpus).rglob("*.onnx"))
        corpus += [file.read_bytes() for file in files if file.stat().st_size < 1 << 16]

    def draw(folder: Path, rng: random.Random) -> Path:
        path = folder / "model.onnx"
        path.write_bytes(changed(rng.choice(corpus), corpus, rng))
        return path

    campaign = Campaign("tests.fuzz.onnx_models", options)
    counts = campaign.run(draw, random.Random(options.seed), options.minutes)
    print(f"{told(counts)}, {campaign.failures} failed")
    return campaign.end()


if __name__ == "__main__":
    sys.exit(main())
