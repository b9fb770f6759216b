# SPDX-License-Identifier: Apache-2.0
"""Operators of ai.onnx.ml, of ai.onnx.preview and its training, without the libraries that write such models."""

import numpy as np
import pytest
import tenon
import tenon.onnx
from messages import graph, ml, model, node, value
from tenon.inference import Predictor
from tenon.onnx.protobuf import field

F32 = np.float32
TREE = {
    "nodes_treeids": [0, 0, 0, 0, 0],
    "nodes_nodeids": [0, 1, 2, 3, 4],
    "nodes_featureids": [0, 0, 1, 0, 0],
    "nodes_values": [0.5, 0.0, 2.0, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 3, 0, 0],
    "nodes_falsenodeids": [2, 0, 4, 0, 0],
    "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0],
    "target_treeids": [0, 0, 0, 0],
    "target_nodeids": [1, 3, 4, 4],
    "target_ids": [0, 0, 0, 1],
    "target_weights": [1.0, 2.0, 3.0, -1.0],
}
ROWS = [[0.5, 9.0], [0.6, 2.5], [0.6, 2.0], [np.nan, 0.0]]


def load(nodes, inputs, outputs=("y",), initializers=None, **options):
    opsets = {"ai.onnx.ml": 3, "ai.onnx.preview": 1, "ai.onnx.preview.training": 1}
    return tenon.onnx.load(model(nodes, inputs, outputs, initializers, opsets=opsets), **options)


def floats(name="x", shape=("n", 2)):
    return value(name, "float32", list(shape))


@pytest.mark.parametrize(
    ("attributes", "wanted"),
    [
        ({}, [[1, 0], [2, 0], [3, -1], [1, 0]]),
        ({"base_values": [10.0, 20.0]}, [[11, 20], [12, 20], [13, 19], [11, 20]]),
        ({"aggregate_function": "MIN"}, [[1, 0], [2, 0], [3, -1], [1, 0]]),
    ],
)
def test_a_tree(attributes, wanted):
    tree = ml("TreeEnsembleRegressor", ["x"], ["y"], n_targets=2, **TREE, **attributes)
    program = load([tree], [floats()], sizes={"n": tenon.Dim("n", min=1, max=16)})
    assert program(tenon.tensor(ROWS)).tolist() == wanted
    assert program(tenon.tensor(ROWS[:1])).tolist() == wanted[:1]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"nodes_truenodeids": [0, 0, 3, 0, 0]}, "does a node lead to itself"),
        ({"nodes_truenodeids": [9, 0, 3, 0, 0]}, "expected node 9 of tree 0"),
        ({"nodes_featureids": [2, 0, 1, 0, 0]}, "features from 0 to 1, .* got one of 2"),
        ({"nodes_values": [0.5]}, "of as many elements each, got 5 and 1"),
        (
            {"nodes_modes": ["BRANCH", "LEAF", "LEAF", "LEAF", "LEAF"]},
            "expected LEAF or BRANCH_LEQ",
        ),
        ({"nodes_nodeids": [0, 1, 2, 3, 3]}, "node 3 of tree 0 twice"),
        ({"target_ids": [0, 0, 0, 5]}, "leaves of results below 2, got one of 5"),
        ({"target_ids": [0, 0, 0, -1]}, "expected numbers from 0 on"),
    ],
)
def test_what_is_no_tree(changed, message):
    tree = ml("TreeEnsembleRegressor", ["x"], ["y"], n_targets=2, **{**TREE, **changed})
    with pytest.raises(ValueError, match=message):
        load([tree], [floats(shape=[4, 2])])


def test_trees_and_scalers_in_a_predictor(tmp_path):
    tree = ml("TreeEnsembleRegressor", ["s"], ["y"], n_targets=2, **TREE)
    scaler = ml("Scaler", ["x"], ["s"], offset=[1.0, 0.0], scale=[0.5, 1.0])
    path = tmp_path / "trees.onnx"
    path.write_bytes(model([scaler, tree], [floats()], ["y"], opsets={"ai.onnx.ml": 3}))
    p = Predictor(path, sizes="n=1:64")
    rows = np.array(ROWS, F32) * [2, 1] + [1, 0]
    assert p.run({"x": rows.astype(F32)})["y"].tolist() == [[1, 0], [2, 0], [3, -1], [1, 0]]


def test_encoders():
    nodes = [
        ml(
            "LabelEncoder",
            ["x"],
            ["y"],
            keys_floats=[2.0, float("nan"), -1.0],
            values_floats=[20.0, 0.5, 10.0],
            default_float=7.0,
        ),
        ml("OneHotEncoder", ["i"], ["hot"], cats_int64s=[5, 1]),
        ml("Binarizer", ["x"], ["b"], threshold=1.0),
        ml("ArrayFeatureExtractor", ["x", "at"], ["f"]),
        ml(
            "Imputer",
            ["x"],
            ["filled"],
            imputed_value_floats=[3.0],
            replaced_value_float=float("nan"),
        ),
        ml("Normalizer", ["positive"], ["n"], norm="L1"),
    ]
    inputs = [floats(shape=[4]), value("i", "int64", [3]), floats("positive", [1, 2])]
    program = load(nodes, inputs, ["y", "hot", "b", "f", "filled", "n"], {"at": np.array([[3, 1]])})
    y, hot, b, f, filled, n = program(
        tenon.tensor([-1.0, 2.0, np.nan, 0.0]), tenon.tensor([1, 5, 4]), tenon.tensor([[1.0, -3.0]])
    )
    assert y.tolist() == [10.0, 20.0, 0.5, 7.0] and b.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert hot.tolist() == [[0, 1], [1, 0], [0, 0]] and f.tolist() == [[0.0, 2.0]]
    assert filled.tolist() == [-1.0, 2.0, 3.0, 0.0] and n.tolist() == [[0.25, -0.75]]


def test_categories_that_are_none_of_the_encoders():
    encoder = ml("OneHotEncoder", ["x"], ["y"], cats_int64s=[5, 1], zeros=0)
    program = load([encoder], [value("x", "int64", [2])])
    assert program(tenon.tensor([1, 5])).tolist() == [[0, 1], [1, 0]]
    with pytest.raises(ValueError, match="OneHotEncoder.*category"):
        program(tenon.tensor([1, 4]))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([ml("ZipMap", ["x"], ["y"], classlabels_int64s=[1, 2])], "without it .*'zipmap': False"),
        ([ml("Scalar", ["x"], ["y"])], "did you mean `ai.onnx.ml.Scaler`"),
        (
            [
                ml(
                    "LinearClassifier",
                    ["x"],
                    ["y", "z"],
                    classlabels_ints=[1, 2],
                    coefficients=[1.0, 1.0],
                    post_transform="SOFTMAX",
                )
            ],
            "`SOFTMAX` of one score for two classes",
        ),
    ],
)
def test_what_is_refused_by_name(nodes, message):
    with pytest.raises(NotImplementedError, match=message):
        load(nodes, [floats(shape=[4, 2])])


def test_a_version_of_another_time():
    with pytest.raises(NotImplementedError, match="expected opset 1 to 5 of ai.onnx.ml, got 9"):
        tenon.onnx.load(
            model([ml("Scaler", ["x"], ["y"])], [floats()], ["y"], opsets={"ai.onnx.ml": 9})
        )


def preview(op, inputs, outputs, domain="ai.onnx.preview", **attributes):
    return node(op, inputs, outputs, **attributes) + field(7, domain)


def test_flex_attention_runs_its_graphs_on_scores():
    q = np.random.default_rng(0).normal(size=(1, 4, 3, 8)).astype(F32)
    k, v = q[:, ::2] * 0.5, q[:, 1::2]
    capped = graph(
        [node("Tanh", ["scores"], ["capped"])], [floats("scores", [1, 4, 3, 3])], ["capped"]
    )
    attention = preview("FlexAttention", ["q", "k", "v"], ["y"], score_mod=capped)
    shapes = [floats(name, array.shape) for name, array in (("q", q), ("k", k), ("v", v))]
    got = load([attention], shapes)(*map(tenon.tensor, (q, k, v))).numpy()
    scores = np.tanh(q @ np.repeat(k, 2, 1).swapaxes(2, 3) / np.sqrt(8))
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(got, weights @ np.repeat(v, 2, 1), rtol=1e-5, atol=1e-6)
    wrong = graph([node("ReduceMax", ["scores"], ["m"])], [floats("scores", [1, 4, 3, 3])], ["m"])
    attention = preview("FlexAttention", ["q", "k", "v"], ["y"], prob_mod=wrong)
    with pytest.raises(ValueError, match="`prob_mod`: expected a graph that keeps dtype and shape"):
        load([attention], shapes)


def test_steps_of_an_optimizer_over_several_tensors():
    names = ["r", "t", "x", "z", "gx", "gz", "vx", "vz"]
    step = preview(
        "Momentum",
        names,
        ["x2", "z2", "vx2", "vz2"],
        "ai.onnx.preview.training",
        alpha=0.5,
        beta=0.25,
        mode="standard",
        norm_coefficient=0.0,
    )
    inputs = [floats("r", []), value("t", "int64", [])] + [floats(name, [1]) for name in names[2:]]
    program = load([step], inputs, ["x2", "z2", "vx2", "vz2"])
    numbers = [tenon.tensor([float(each)]) for each in (1, 2, 4, 8, 2, 6)]
    for time, beta in ((0, 1.0), (3, 0.25)):
        got = [each.item() for each in program(tenon.tensor(0.1), tenon.tensor(time), *numbers)]
        velocity = [0.5 * 2 + beta * 4, 0.5 * 6 + beta * 8]
        assert got == pytest.approx([1 - 0.1 * velocity[0], 2 - 0.1 * velocity[1], *velocity])


def coupled(of_two, classes):
    """Probabilities by those of pairs: the minimum of p'Qp over the simplex, which its stationary point solves as linear equations."""
    q = np.zeros((classes, classes))
    for i in range(classes):
        for j in range(classes):
            if i != j:
                q[i, i] += of_two[j, i] ** 2
                q[i, j] = -of_two[j, i] * of_two[i, j]
    ones = np.ones((classes, 1))
    system = np.block([[q, ones], [ones.T, np.zeros((1, 1))]])
    return np.linalg.solve(system, np.r_[np.zeros(classes), 1])[:classes]


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_probabilities_of_support_vector_machines(classes):
    rng = np.random.default_rng(classes)
    pairs = classes * (classes - 1) // 2
    vectors, x = rng.normal(size=(classes, 2)), rng.normal(size=(5, 2)).astype(F32)
    weights = rng.normal(size=(classes - 1, classes))
    a, b = -1 - rng.random(pairs), rng.normal(size=pairs) / 4
    machine = ml("SVMClassifier", ["x"], ["label", "y"], kernel_type="LINEAR", kernel_params=[1.0, 0.0, 0.0],
                 classlabels_ints=list(range(classes)), vectors_per_class=[1] * classes,
                 support_vectors=vectors.ravel().tolist(), coefficients=weights.ravel().tolist(), rho=[0.25] * pairs,
                 prob_a=a.tolist(), prob_b=b.tolist(), post_transform="NONE")  # fmt: skip
    program = load(
        [machine], [floats()], ("label", "y"), sizes={"n": tenon.Dim("n", min=1, max=16)}
    )
    kernel = x @ vectors.T
    got = program(tenon.from_numpy(x))[1].numpy()
    for row in range(5):
        of_two, pair = np.zeros((classes, classes)), 0
        for i in range(classes):
            for j in range(i + 1, classes):
                score = weights[j - 1, i] * kernel[row, i] + weights[i, j] * kernel[row, j] + 0.25
                of_two[i, j] = 1 / (1 + np.exp(a[pair] * score + b[pair]))
                of_two[j, i], pair = 1 - of_two[i, j], pair + 1
        # The rounds end 0.005 / classes from where they would rest.
        np.testing.assert_allclose(got[row], coupled(of_two, classes), atol=0.01)
        assert abs(got[row].sum() - 1) < 1e-5
