# SPDX-License-Identifier: Apache-2.0
"""Text in models of ONNX: known texts, texts that follow from the inputs, and models that are loaded for each call's texts."""

import numpy as np
import pytest
import tenon
import tenon.onnx
from messages import graph, ml, model, node, value
from tenon.inference import Predictor

ML = {"ai.onnx.ml": 3}


def run(nodes, inputs, outputs, values, initializers=None, **options):
    """The results of a model all of whose inputs are texts."""
    data = model(nodes, inputs, outputs, initializers, **options)
    results = tenon.onnx.load(data, values=values)()
    results = results if isinstance(results, tuple) else (results,)
    return [item.tolist() if isinstance(item, tenon.Tensor) else item for item in results]


def text(name="x", shape=("n",)):
    return value(name, "text", list(shape))


def test_operators_on_text():
    nodes = [
        node("StringConcat", ["x", "y"], ["both"]),
        node("StringSplit", ["both"], ["pieces", "counts"], delimiter=" ", maxsplit=1),
        node("Equal", ["x", "y"], ["equal"]),
        node("Shape", ["pieces"], ["shape"]),
    ]
    got = run(
        nodes,
        [text(shape=[2, 1]), text("y", [2])],
        ["both", "pieces", "counts", "equal", "shape"],
        {"x": [["a b"], ["ü "]], "y": np.array(["a b", "c"])},
    )
    both = [["a ba b", "a bc"], ["ü a b", "ü c"]]
    pieces = [[["a", "ba b"], ["a", "bc"]], [["ü", "a b"], ["ü", "c"]]]
    assert got == [both, pieces, [[2, 2], [2, 2]], [[True, False], [False, False]], [2, 2, 2]]


@pytest.mark.parametrize(
    ("attributes", "wanted"),
    [
        ({}, ["Ünder", "the", "The", "RAIN"]),
        ({"case_change_action": "UPPER"}, ["ÜNDER", "THE", "THE", "RAIN"]),
        ({"case_change_action": "LOWER", "stopwords": ["the"]}, ["ünder", "rain"]),
        ({"is_case_sensitive": 1, "stopwords": ["The"]}, ["Ünder", "the", "RAIN"]),
        ({"stopwords": ["the", "rain", "ünder"]}, [""]),
    ],
)
def test_string_normalizer(attributes, wanted):
    nodes = [node("StringNormalizer", ["x"], ["y"], **attributes)]
    words = ["Ünder", "the", "The", "RAIN"]
    assert run(nodes, [text()], ["y"], {"x": words}) == [wanted]


def test_what_moves_elements_moves_texts():
    nodes = [
        node("Reshape", ["x", "shape"], ["r"]),
        node("Transpose", ["r"], ["t"]),
        node("Concat", ["t", "word"], ["c"], axis=0),
        node("Gather", ["c", "at"], ["g"], axis=0),
        node("Unique", ["x"], ["u", "first", "inverse", "counts"]),
    ]
    constants = {
        "shape": np.array([2, 2]),
        "word": np.array([["z", "a"]], object),
        "at": np.array([2, 0]),
    }
    got = run(nodes, [text()], ["g", "u", "counts"], {"x": ["d", "b", "d", "a"]}, constants)
    assert got == [[["z", "a"], ["d", "d"]], ["a", "b", "d"], [1, 1, 2]]


def test_casts():
    nodes = [
        node("Cast", ["x"], ["f"], to=1),
        node("Cast", ["i"], ["t"], to=8),
        node("Cast", ["h"], ["s"], to=8),
    ]
    numbers = {"i": np.array([-3, 12]), "h": np.array([0.1, np.inf, 1e10], np.float32)}
    got = run(nodes, [text()], ["f", "t", "s"], {"x": ["1.5", "-INF", "NaN", " 2"]}, numbers)
    np.testing.assert_array_equal(got[0], [1.5, -np.inf, np.nan, 2])
    assert got[1:] == [["-3", "12"], ["0.1", "INF", "1e+10"]]
    with pytest.raises(ValueError, match="expected texts that are numbers, got `one`"):
        run(nodes[:1], [text()], ["f"], {"x": ["one"]})


@pytest.mark.parametrize(
    ("pattern", "texts", "matched"),
    [
        (r"a|bc+", ["a", "bc", "bccc", "ab", "b"], "11100"),
        (r"(?i)(?:ü|h)el{2,3}o?", ["Üello", "hell", "HELLL", "hello!", "helllll"], "11100"),
        (r"[^\d.-]*", ["", "abc", "a1", "a-", "é"], "11001"),
        (r"\bw.\w\b\.?$", ["www", "w\nw", "wüw", "www.", "w.w"], "10111"),
        (r"(?P<n>x{0})(y+?)*\x41\x{fc}[[:digit:]]", ["Aü1", "yyAü9", "xAü1", "Aü"], "1100"),
        (r"(a*)*(a?){30}a{30}", ["a" * 30, "a" * 29, "a" * 5000 + "b"], "100"),
    ],
)
def test_regular_expressions(pattern, texts, matched):
    nodes = [node("RegexFullMatch", ["x"], ["y"], pattern=pattern)]
    got = run(nodes, [text()], ["y"], {"x": texts})
    assert "".join(str(int(each)) for each in got[0]) == matched


@pytest.mark.parametrize(
    ("pattern", "error", "message"),
    [
        ("(a", ValueError, r"has a \( without its \)"),
        ("a)", ValueError, r"has a \) without its \("),
        ("[a", ValueError, r"has a \[ without its \]"),
        ("*a", ValueError, "repeats nothing"),
        ("a{5,2}", ValueError, "repeats other than from 0 to 1000 times"),
        ("(((a{999}){999}){999}){999}", ValueError, "more than 10000 states"),
        ("((((){999}){999}){999}){999}", ValueError, "repeats repetitions too often"),
        ("(" * 300 + ")" * 300, ValueError, "more than 200 deep"),
        (r"\pL", NotImplementedError, r"the escape \\p"),
        ("(?m)a", NotImplementedError, "flag `m`"),
        ("a\\", ValueError, "ends where an escape is expected"),
    ],
)
def test_expressions_that_are_none(pattern, error, message):
    nodes = [node("RegexFullMatch", ["x"], ["y"], pattern=pattern)]
    with pytest.raises(error, match=message):
        run(nodes, [text()], ["y"], {"x": ["a"]})


LABELS = {
    "classlabels_strings": ["maple", "oak"],
    "coefficients": [1.0, 0.0, 0.0, 1.0],
    "intercepts": [0.0, 0.0],
}


def test_texts_that_follow_from_the_inputs():
    nodes = [
        ml("LinearClassifier", ["x"], ["label", "scores"], **LABELS),
        node("StringConcat", ["label", "end"], ["long"]),
        ml("LabelEncoder", ["long"], ["code"], keys_strings=["oak!"], values_int64s=[7]),
        node("RegexFullMatch", ["long"], ["m"], pattern=".a.*"),
    ]
    inputs = [value("x", "float32", [3, 2])]
    data = model(
        nodes, inputs, ["label", "long", "code", "m"], {"end": np.array(["!"], object)}, opsets=ML
    )
    program = tenon.onnx.load(data)
    label, long, code, m = program(tenon.tensor([[1.0, 2.0], [2.0, 1.0], [0.0, 5.0]]))
    assert label == ["oak", "maple", "oak"] and long == ["oak!", "maple!", "oak!"]
    assert code.tolist() == [7, -1, 7] and m.tolist() == [True, True, True]
    with pytest.raises(
        TypeError, match="save: expected results that are tensors, got some of text"
    ):
        program.save("none.tenon")
    with pytest.raises(TypeError, match="onnx.export: expected results that are tensors"):
        tenon.onnx.export(program, "none.onnx")


def test_a_branch_that_returns_captured_texts_as_numbers(tmp_path):
    classifier = ml("LinearClassifier", ["x"], ["label", "scores"], **LABELS)
    chosen = ml("LabelEncoder", ["label"], ["a"], keys_strings=["oak"], values_int64s=[5])
    other = node("Size", ["label"], ["b"])
    branch = node(
        "If",
        ["flag"],
        ["y"],
        then_branch=graph([chosen, node("ReduceSum", ["a"], ["s"], keepdims=0)], [], ["s"]),
        else_branch=graph([other], [], ["b"]),
    )
    inputs = [value("x", "float32", [2, 2]), value("flag", "bool", [])]
    program = tenon.onnx.load(model([classifier, branch], inputs, ["y"], opsets=ML))
    x = tenon.tensor([[1.0, 2.0], [2.0, 1.0]])
    assert program(x, tenon.tensor(True)).item() == 4
    assert program(x, tenon.tensor(False)).item() == 2
    path = tmp_path / "labels.onnx"
    path.write_bytes(model([classifier], inputs[:1], ["label"], opsets=ML))
    with pytest.raises(NotImplementedError, match="result `label`: text, which no tensor holds"):
        Predictor(path)


def test_a_runner_loads_for_each_text(monkeypatch):
    nodes = [
        ml("OneHotEncoder", ["city"], ["hot"], cats_strings=["Oslo", "Rome"]),
        node("MatMul", ["x", "hot"], ["y"]),
    ]
    inputs = [text("city"), value("x", "float32", ["m", "n"])]
    runner = tenon.onnx.Runner(model(nodes, inputs, ["y"], opsets=ML))
    x = tenon.tensor([[1.0, 2.0, 4.0]])
    assert runner({"city": ["Rome", "Oslo", "Rome"], "x": x})["y"].tolist() == [[2.0, 5.0]]
    assert runner({"city": ["Bern", "Oslo", "Oslo"], "x": x})["y"].tolist() == [[6.0, 0.0]]
    for city in range(40):
        assert runner({"city": [str(city)], "x": np.ones((2, 1), np.float32)})["y"].shape == (2, 2)
    assert len(runner._programs) == 32
    loads = []
    monkeypatch.setattr("tenon.onnx._runner.load", lambda *a, **k: loads.append(a))
    again = runner({"city": ["39"], "x": np.ones((2, 1), np.float32)})["y"]
    assert again.tolist() == [[0.0, 0.0]] * 2 and not loads
    with pytest.raises(ValueError, match="expected the inputs 'city', 'x', got 'x'"):
        runner({"x": x})
    with pytest.raises(ValueError, match="known: expected names of inputs"):
        tenon.onnx.Runner(model(nodes, inputs, ["y"], opsets=ML), known=["z"])


def test_n_grams():
    nodes = [
        node(
            "TfIdfVectorizer",
            ["x"],
            ["y"],
            max_gram_length=2,
            max_skip_count=1,
            min_gram_length=1,
            mode="TFIDF",
            ngram_counts=[0, 2],
            ngram_indexes=[0, 1, 2],
            pool_strings=["to", "be", "to", "be"],
            weights=[1.0, 10.0, 0.5],
        )
    ]
    words = ["to", "be", "or", "not", "to", "x", "be"]
    assert run(nodes, [text()], ["y"], {"x": words}) == [[2.0, 20.0, 1.0]]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (None, NotImplementedError, "input `x`: text, which has to be known .* tenon.onnx.Runner"),
        ({"x": [1, 2]}, TypeError, "input 'x': expected a text, or nested lists of texts, got int"),
        ({"x": [["a"], ["b", "c"]]}, ValueError, "nested lists of the same lengths"),
        ({"x": "a\0b"}, ValueError, "without the letter NUL"),
        ({"x": [["a"]]}, ValueError, r"expected texts of its shape, got a tensor of text \[1, 1\]"),
    ],
)
def test_texts_that_are_none(given, error, message):
    data = model([node("Identity", ["x"], ["y"])], [text()], ["y"])
    with pytest.raises(error, match=message):
        tenon.onnx.load(data, values=given)


def test_operators_of_numbers_say_that_they_got_text():
    with pytest.raises(ValueError, match=r"expected a tensor, got a tensor of text \[1\]"):
        run([node("Abs", ["x"], ["y"])], [text()], ["y"], {"x": ["a"]})
