# SPDX-License-Identifier: Apache-2.0
"""Models of scikit-learn, converted by skl2onnx, beside ONNX Runtime: what agrees, what is refused and why, what is wrong.

    PYTHONPATH=build/release/python PYTHON_WITH_THEM tests/onnx/sklearn_suite.py [-k TEXT] [--least 90]

Needs scikit-learn, skl2onnx and onnxruntime. What skl2onnx cannot convert is counted apart. Fails if a result is wrong, or if fewer
models agree than --least.
"""

from __future__ import annotations

import argparse
import collections
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import tenon
import tenon.onnx
from skl2onnx import to_onnx
from sklearn import (
    cluster,
    cross_decomposition,
    decomposition,
    discriminant_analysis,
    ensemble,
    feature_selection,
    impute,
    linear_model,
    mixture,
    multiclass,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    random_projection,
    svm,
    tree,
)
from sklearn.datasets import load_iris, make_regression

# ONNX Runtime finds probabilities of a pair by iteration, which ends 2e-3 before the value; scores on the border of a class are noise.
TOLERANCES = {"svc_probability": 5e-3}
NOISE = {"one_class_svm": "label"}


class Model(NamedTuple):
    name: str
    made: Any
    x: np.ndarray
    y: Any = None
    is_classifier: bool = False


def classifiers() -> Iterator[Model]:
    x, y = load_iris(return_X_y=True)
    x = x.astype(np.float32)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    for kind, labels in (("3", y), ("2", (y > 0).astype(np.int64)), ("text", names)):
        for name, made in {
            "logistic": linear_model.LogisticRegression(max_iter=300),
            "tree": tree.DecisionTreeClassifier(max_depth=4),
            "forest": ensemble.RandomForestClassifier(8, max_depth=4),
            "boosting": ensemble.GradientBoostingClassifier(n_estimators=6),
            "histogram_boosting": ensemble.HistGradientBoostingClassifier(max_iter=6),
            "extra_trees": ensemble.ExtraTreesClassifier(8, max_depth=4),
            "svc": svm.SVC(),
            "naive_bayes": naive_bayes.GaussianNB(),
            "neighbors": neighbors.KNeighborsClassifier(3),
            "mlp": neural_network.MLPClassifier((6,), max_iter=200),
            "sgd": linear_model.SGDClassifier(loss="log_loss"),
            "discriminant": discriminant_analysis.LinearDiscriminantAnalysis(),
            "adaboost": ensemble.AdaBoostClassifier(n_estimators=4),
            "bagging": ensemble.BaggingClassifier(n_estimators=4),
        }.items():
            yield Model(f"{name}_{kind}", made, x, labels, True)
    for kernel in ("linear", "poly", "sigmoid", "rbf"):
        yield Model(f"svc_{kernel}", svm.SVC(kernel=kernel), x, y, True)
    yield Model("svc_probability", svm.SVC(probability=True), x, (y > 0).astype(int), True)
    yield Model("svc_probability_of_three", svm.SVC(probability=True), x, y, True)
    one = linear_model.LogisticRegression()
    yield Model("one_vs_rest", multiclass.OneVsRestClassifier(one), x, y, True)
    scaled = (preprocessing.StandardScaler(), decomposition.PCA(2), svm.SVC())
    yield Model("pipeline", pipeline.make_pipeline(*scaled), x, y, True)
    words = np.stack([names, np.where(x[:, 0] > 5.5, "big", "small")], 1).astype(object)
    steps = (
        preprocessing.OneHotEncoder(handle_unknown="ignore"),
        linear_model.LogisticRegression(),
    )
    yield Model("pipeline_of_text", pipeline.make_pipeline(*steps), words, names, True)
    encoder = preprocessing.OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    yield Model("one_hot_text", encoder, words)
    yield Model("ordinal_text", preprocessing.OrdinalEncoder(), words)


def regressors() -> Iterator[Model]:
    x, y = make_regression(120, 5, random_state=0)
    x = x.astype(np.float32)
    for name, made in {
        "linear": linear_model.LinearRegression(),
        "ridge": linear_model.Ridge(),
        "lasso": linear_model.Lasso(),
        "elastic": linear_model.ElasticNet(),
        "huber": linear_model.HuberRegressor(),
        "bayes": linear_model.BayesianRidge(),
        "tree": tree.DecisionTreeRegressor(max_depth=5),
        "forest": ensemble.RandomForestRegressor(8, max_depth=5),
        "boosting": ensemble.GradientBoostingRegressor(n_estimators=8),
        "histogram_boosting": ensemble.HistGradientBoostingRegressor(max_iter=8),
        "adaboost": ensemble.AdaBoostRegressor(n_estimators=4),
        "bagging": ensemble.BaggingRegressor(n_estimators=4),
        "neighbors": neighbors.KNeighborsRegressor(3),
        "mlp": neural_network.MLPRegressor(hidden_layer_sizes=(8,), max_iter=200),
        "pls": cross_decomposition.PLSRegression(2),
        **{f"svr_{kernel}": svm.SVR(kernel=kernel) for kernel in ("linear", "poly", "rbf")},
    }.items():
        yield Model(f"{name}_regressor", made, x, y)
    yield Model("poisson_regressor", linear_model.PoissonRegressor(), x, np.abs(y))


def transformers() -> Iterator[Model]:
    x, y = load_iris(return_X_y=True)
    x = x.astype(np.float32)
    for name, made in {
        "isolation_forest": ensemble.IsolationForest(n_estimators=5),
        "one_class_svm": svm.OneClassSVM(),
        "standard": preprocessing.StandardScaler(),
        "minmax": preprocessing.MinMaxScaler(),
        "maxabs": preprocessing.MaxAbsScaler(),
        "robust": preprocessing.RobustScaler(),
        **{f"norm_{norm}": preprocessing.Normalizer(norm) for norm in ("l1", "l2", "max")},
        "binarizer": preprocessing.Binarizer(threshold=2.0),
        "polynomial": preprocessing.PolynomialFeatures(2),
        "pca": decomposition.PCA(2),
        "svd": decomposition.TruncatedSVD(2),
        "kmeans": cluster.KMeans(3, n_init=2),
        "bins": preprocessing.KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"),
        "bin_numbers": preprocessing.KBinsDiscretizer(3, encode="ordinal", strategy="uniform"),
        "variance": feature_selection.VarianceThreshold(0.3),
        "mixture": mixture.GaussianMixture(2),
        "power": preprocessing.PowerTransformer(),
        "quantiles": preprocessing.QuantileTransformer(n_quantiles=10),
        "projection": random_projection.GaussianRandomProjection(2),
    }.items():
        yield Model(name, made, x)
    yield Model("best", feature_selection.SelectKBest(k=2), x, y)
    holed = x.copy()
    holed[::7, 1] = np.nan
    for strategy in ("mean", "median"):
        yield Model(f"imputer_{strategy}", impute.SimpleImputer(strategy=strategy), holed)
    integers = np.stack([y, y > 0, x[:, 0]], 1).astype(np.int64)
    for policy in ("error", "ignore"):
        encoder = preprocessing.OneHotEncoder(sparse_output=False, handle_unknown=policy)
        yield Model(f"one_hot_{policy}", encoder, integers)
    yield Model("ordinal", preprocessing.OrdinalEncoder(), integers)


def difference(name: str, result: str, got: Any, wanted: np.ndarray) -> str:
    """What is wrong with a result; empty: nothing."""
    if wanted.dtype == object:
        return "" if got == wanted.tolist() else f"{result}: other texts"
    got = got.numpy()
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{result}: expected {wanted.dtype}{wanted.shape}, got {got.dtype}{got.shape}"
    tolerance = TOLERANCES.get(name, 1e-4)
    if np.allclose(got, wanted, rtol=tolerance, atol=tolerance, equal_nan=True):
        return ""
    return f"{result}: apart by {np.nanmax(np.abs(got.astype(float) - wanted.astype(float))):.3g}"


def run(model: Model) -> tuple[str, str]:
    """(verdict, reason): agrees, refused, wrong, or no model that the runtime takes."""
    try:
        model.made.fit(model.x, *(() if model.y is None else (model.y,)))
        options = {"zipmap": False} if model.is_classifier else None
        written = to_onnx(
            model.made, model.x[:1], options=options, target_opset={"": 21, "ai.onnx.ml": 3}
        )
        data = written.SerializeToString()
        session = onnxruntime.InferenceSession(data)
        names = [item.name for item in session.get_inputs()]
        rows = model.x[:40]
        columns = [rows] if len(names) == 1 else [rows[:, i : i + 1] for i in range(len(names))]
        feeds = dict(zip(names, columns, strict=True))
        wanted = session.run(None, feeds)
    except Exception as problem:
        return "not converted", f"{type(problem).__name__}: {problem}".splitlines()[0][:100]
    try:
        results = tenon.onnx.Runner(data)(feeds)
    except NotImplementedError as problem:
        return "refused", str(problem)
    for (name, got), expected in zip(results.items(), wanted, strict=True):
        if NOISE.get(model.name) == name:
            continue
        if wrong := difference(model.name, name, got, np.asarray(expected)):
            return "wrong", wrong
    return "agrees", ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-k", default="", help="only models whose name has this text")
    parser.add_argument("--least", type=int, default=0, help="fail if fewer models agree")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    np.random.seed(0)
    verdicts: collections.Counter[str] = collections.Counter()
    for model in (*classifiers(), *regressors(), *transformers()):
        if options.k in model.name:
            verdict, reason = run(model)
            verdicts[verdict] += 1
            if verdict != "agrees":
                print(f"{verdict}  {model.name}: {reason}")
    print(f"\n{sum(verdicts.values())} models: {dict(verdicts)}")
    return 1 if verdicts["wrong"] or verdicts["agrees"] < options.least else 0


if __name__ == "__main__":
    sys.exit(main())
