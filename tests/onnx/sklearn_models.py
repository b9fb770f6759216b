# SPDX-License-Identifier: Apache-2.0
"""Models of scikit-learn, fitted to small data of their own and converted by skl2onnx."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from compared import Case
from skl2onnx import to_onnx
from sklearn import (
    calibration,
    cluster,
    compose,
    cross_decomposition,
    decomposition,
    discriminant_analysis,
    ensemble,
    feature_extraction,
    feature_selection,
    gaussian_process,
    impute,
    linear_model,
    mixture,
    model_selection,
    multiclass,
    multioutput,
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

TOLERANCE = 1e-4
# Models are fitted in float64, and those of ONNX compute in float32.
ORIGIN_TOLERANCE = 1e-3
# What subtracts nearly equal numbers in float32, or divides by their difference.
CANCELLING = {"gaussian_process", "gaussian_process_classifier", "mixture", "bayesian_mixture"}
NOISE = {"one_class_svm": ("label",)}  # scores on the border of a class
OPSETS = {"": 21, "ai.onnx.ml": 3}


class Model(NamedTuple):
    name: str
    made: Any
    x: np.ndarray
    y: Any = None
    methods: tuple[str, ...] = ("transform",)  # what each result is by scikit-learn


def iris() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Measures, numbers of classes and their names."""
    x, y = load_iris(return_X_y=True)
    return x.astype(np.float32), y, np.array(["setosa", "versicolor", "virginica"])[y]


def classifiers() -> Iterator[Model]:
    x, y, names = iris()
    label, scores = "predict", "predict_proba"
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
            yield Model(f"{name}_{kind}", made, x, labels, (label, scores))
    logistic = linear_model.LogisticRegression()
    forest = ensemble.RandomForestClassifier(4, max_depth=3)
    pair = [("a", logistic), ("b", forest)]
    counts = np.round(x)
    for name, made in {
        **{f"svc_{kernel}": svm.SVC(kernel=kernel) for kernel in ("linear", "poly", "sigmoid")},
        "svc_probability_of_three": svm.SVC(probability=True),
        "nu_svc": svm.NuSVC(nu=0.3),
        "linear_svc": svm.LinearSVC(),
        "perceptron": linear_model.Perceptron(),
        "ridge_classifier": linear_model.RidgeClassifier(),
        "passive_aggressive": linear_model.SGDClassifier(loss="hinge", penalty=None),
        "logistic_cv": linear_model.LogisticRegressionCV(cv=3),
        "extra_tree": tree.ExtraTreeClassifier(max_depth=4),
        "quadratic_discriminant": discriminant_analysis.QuadraticDiscriminantAnalysis(),
        "gaussian_process_classifier": gaussian_process.GaussianProcessClassifier(),
        "radius_neighbors": neighbors.RadiusNeighborsClassifier(3.0),
        "weighted_neighbors": neighbors.KNeighborsClassifier(5, weights="distance"),
        "manhattan_neighbors": neighbors.KNeighborsClassifier(5, p=1),
        "calibrated": calibration.CalibratedClassifierCV(logistic),
        "calibrated_isotonic": calibration.CalibratedClassifierCV(logistic, method="isotonic"),
        "one_vs_rest": multiclass.OneVsRestClassifier(logistic),
        "one_vs_one": multiclass.OneVsOneClassifier(logistic),
        "voting": ensemble.VotingClassifier(pair, voting="soft"),
        "hard_voting": ensemble.VotingClassifier(pair),
        "stacking": ensemble.StackingClassifier(pair, logistic),
        "grid_search": model_selection.GridSearchCV(logistic, {"C": [0.1, 1.0]}),
        "pipeline": pipeline.make_pipeline(
            preprocessing.StandardScaler(), decomposition.PCA(2), svm.SVC()
        ),
        "pipeline_of_union": pipeline.make_pipeline(
            pipeline.make_union(preprocessing.MinMaxScaler(), decomposition.PCA(2)), logistic
        ),
        "pipeline_of_columns": pipeline.make_pipeline(
            compose.make_column_transformer(
                (preprocessing.StandardScaler(), [0, 1]), (preprocessing.KBinsDiscretizer(3), [2])
            ),
            forest,
        ),
        "selected": pipeline.make_pipeline(feature_selection.SelectKBest(k=2), logistic),
    }.items():
        yield Model(name, made, x, y, (label, scores))
    for name, made in {
        "bernoulli": naive_bayes.BernoulliNB(binarize=2.5),
        "multinomial": naive_bayes.MultinomialNB(),
        "complement": naive_bayes.ComplementNB(),
        "categorical": naive_bayes.CategoricalNB(),
    }.items():
        yield Model(name, made, counts, y, (label, scores))
    yield Model(
        "svc_probability", svm.SVC(probability=True), x, (y > 0).astype(int), (label, scores)
    )
    words = np.stack([names, np.where(x[:, 0] > 5.5, "big", "small")], 1).astype(object)
    encoder = preprocessing.OneHotEncoder(handle_unknown="ignore")
    yield Model(
        "pipeline_of_text", pipeline.make_pipeline(encoder, logistic), words, names, (label, scores)
    )
    several = multioutput.MultiOutputClassifier(logistic)
    yield Model(
        "multi_output", several, x, np.stack([y > 0, y > 1], 1).astype(int), (label, "", "")
    )


def regressors() -> Iterator[Model]:
    x, y = make_regression(120, 5, random_state=0)
    x, y = x.astype(np.float32), y / np.abs(y).max()
    ridge, forest = linear_model.Ridge(), ensemble.RandomForestRegressor(4, max_depth=3)
    pair = [("a", ridge), ("b", forest)]
    for name, made in {
        "linear": linear_model.LinearRegression(),
        "ridge": ridge,
        "lasso": linear_model.Lasso(0.01),
        "elastic": linear_model.ElasticNet(0.01),
        "lars": linear_model.Lars(),
        "matching_pursuit": linear_model.OrthogonalMatchingPursuit(),
        "huber": linear_model.HuberRegressor(),
        "theil_sen": linear_model.TheilSenRegressor(max_iter=50),
        "ransac": linear_model.RANSACRegressor(random_state=0),
        "bayes": linear_model.BayesianRidge(),
        "relevance": linear_model.ARDRegression(),
        "sgd_of_numbers": linear_model.SGDRegressor(),
        "quantile": linear_model.QuantileRegressor(alpha=0.01),
        "tree": tree.DecisionTreeRegressor(max_depth=5),
        "extra_tree": tree.ExtraTreeRegressor(max_depth=5),
        "forest": ensemble.RandomForestRegressor(8, max_depth=5),
        "extra_trees": ensemble.ExtraTreesRegressor(8, max_depth=5),
        "boosting": ensemble.GradientBoostingRegressor(n_estimators=8),
        "histogram_boosting": ensemble.HistGradientBoostingRegressor(max_iter=8),
        "adaboost": ensemble.AdaBoostRegressor(n_estimators=4),
        "bagging": ensemble.BaggingRegressor(n_estimators=4),
        "voting": ensemble.VotingRegressor(pair),
        "stacking": ensemble.StackingRegressor(pair, ridge),
        "neighbors": neighbors.KNeighborsRegressor(3),
        "radius_neighbors": neighbors.RadiusNeighborsRegressor(4.0),
        "mlp": neural_network.MLPRegressor(hidden_layer_sizes=(8,), max_iter=200),
        "pls": cross_decomposition.PLSRegression(2),
        "linear_svr": svm.LinearSVR(),
        "nu_svr": svm.NuSVR(),
        **{f"svr_{kernel}": svm.SVR(kernel=kernel) for kernel in ("linear", "poly", "rbf")},
        "gaussian_process": gaussian_process.GaussianProcessRegressor(alpha=0.1),
        "pipeline": pipeline.make_pipeline(preprocessing.PolynomialFeatures(2), ridge),
        "multi_output": multioutput.MultiOutputRegressor(ridge),
    }.items():
        wanted = np.stack([y, -y], 1) if name == "multi_output" else y
        yield Model(f"{name}_regressor", made, x, wanted, ("predict",))
    for name, made in {
        "poisson": linear_model.PoissonRegressor(),
        "gamma": linear_model.GammaRegressor(),
        "tweedie": linear_model.TweedieRegressor(power=1.5),
    }.items():
        yield Model(f"{name}_regressor", made, x, np.abs(y) + 0.1, ("predict",))


def transformers() -> Iterator[Model]:
    x, y, names = iris()
    words = np.stack([names, np.where(x[:, 0] > 5.5, "big", "small")], 1).astype(object)
    for name, made in {
        "standard": preprocessing.StandardScaler(),
        "minmax": preprocessing.MinMaxScaler(),
        "maxabs": preprocessing.MaxAbsScaler(),
        "robust": preprocessing.RobustScaler(),
        **{f"norm_{norm}": preprocessing.Normalizer(norm) for norm in ("l1", "l2", "max")},
        "binarizer": preprocessing.Binarizer(threshold=2.0),
        "polynomial": preprocessing.PolynomialFeatures(2),
        "interactions": preprocessing.PolynomialFeatures(3, interaction_only=True),
        "pca": decomposition.PCA(2),
        "whitened_pca": decomposition.PCA(2, whiten=True),
        "incremental_pca": decomposition.IncrementalPCA(2),
        "kernel_pca": decomposition.KernelPCA(2, kernel="rbf"),
        "svd": decomposition.TruncatedSVD(2),
        "bins": preprocessing.KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"),
        "bin_numbers": preprocessing.KBinsDiscretizer(3, encode="ordinal", strategy="uniform"),
        "variance": feature_selection.VarianceThreshold(0.3),
        "power": preprocessing.PowerTransformer(),
        "quantiles": preprocessing.QuantileTransformer(n_quantiles=10),
        "projection": random_projection.GaussianRandomProjection(2),
        "tree_embedding": ensemble.RandomTreesEmbedding(3, max_depth=3, sparse_output=False),
        "function": preprocessing.FunctionTransformer(),
        "components": neighbors.NeighborhoodComponentsAnalysis(2, max_iter=10),
        "best": feature_selection.SelectKBest(k=2),
        "percentile": feature_selection.SelectPercentile(percentile=50),
        "from_model": feature_selection.SelectFromModel(linear_model.LogisticRegression()),
        "elimination": feature_selection.RFE(linear_model.LogisticRegression()),
        "union": pipeline.make_union(preprocessing.StandardScaler(), decomposition.PCA(2)),
        "columns": compose.make_column_transformer(
            (preprocessing.StandardScaler(), [0, 1]), remainder="passthrough"
        ),
    }.items():
        yield Model(name, made, x, y)
    both = ("predict", "decision_function")
    yield Model("isolation_forest", ensemble.IsolationForest(n_estimators=5), x, None, both)
    yield Model("one_class_svm", svm.OneClassSVM(), x, None, both)
    yield Model("sgd_one_class", linear_model.SGDOneClassSVM(), x, None, both)
    outliers = neighbors.LocalOutlierFactor(10, novelty=True)
    yield Model("outlier_factor", outliers, x, None, both)
    for name, made in {
        "kmeans": cluster.KMeans(3, n_init=2),
        "batched_kmeans": cluster.MiniBatchKMeans(3, n_init=2),
    }.items():
        yield Model(name, made, x, None, ("predict", "transform"))
    for name, made in {
        "mixture": mixture.GaussianMixture(2),
        "tied_mixture": mixture.GaussianMixture(2, covariance_type="tied"),
        "bayesian_mixture": mixture.BayesianGaussianMixture(n_components=2),
    }.items():
        yield Model(name, made, x, None, ("predict", "predict_proba"))
    holed = x.copy()
    holed[::7, 1] = np.nan
    for strategy in ("mean", "median", "most_frequent"):
        yield Model(f"imputer_{strategy}", impute.SimpleImputer(strategy=strategy), holed)
    yield Model("imputer_neighbors", impute.KNNImputer(n_neighbors=3), holed)
    integers = np.stack([y, y > 0, x[:, 0]], 1).astype(np.int64)
    for policy in ("error", "ignore"):
        encoder = preprocessing.OneHotEncoder(sparse_output=False, handle_unknown=policy)
        yield Model(f"one_hot_{policy}", encoder, integers)
    yield Model("ordinal", preprocessing.OrdinalEncoder(), integers)
    encoder = preprocessing.OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    yield Model("one_hot_text", encoder, words)
    yield Model("ordinal_text", preprocessing.OrdinalEncoder(), words)
    yield Model(
        "target_encoder", preprocessing.TargetEncoder(target_type="continuous"), integers, x[:, 1]
    )
    yield Model(
        "label_binarizer", preprocessing.LabelBinarizer(), y.astype(np.int64).reshape(-1, 1)
    )
    sentences = np.array([f"{a} {b} flower of {a}" for a, b in words], object)
    text = feature_extraction.text
    yield Model("counts_of_words", text.CountVectorizer(), sentences)
    yield Model("weights_of_words", text.TfidfVectorizer(ngram_range=(1, 2)), sentences)
    yield Model("weights_of_counts", text.TfidfTransformer(), np.round(x))


@functools.cache
def models() -> dict[str, Model]:
    return {model.name: model for model in (*classifiers(), *regressors(), *transformers())}


def names(kind: str) -> list[str]:
    assert kind == "sklearn"
    return list(models())


def results_of(model: Model, rows: np.ndarray) -> list[Any]:
    """What scikit-learn computes, None for what it has no method for or returns otherwise than ONNX."""
    found = []
    for method in model.methods:
        call = getattr(model.made, method, None)
        value = None if call is None else call(rows)
        value = value.toarray() if hasattr(value, "toarray") else value
        found.append(value)
    return found


def network(kind: str, name: str) -> Callable[[Path, bool], Case]:
    """What fits the model and writes it into a file. The number of rows is always open."""
    warnings.filterwarnings("ignore")
    np.random.seed(0)
    model = models()[name]
    model.made.fit(model.x, *(() if model.y is None else (model.y,)))

    def rows(batch: int) -> np.ndarray:
        return model.x[::3][:40] if batch == 0 else model.x[77:78]

    def written(path: Path, is_open: bool) -> Case:
        assert is_open
        options = (
            {"zipmap": False}
            if "predict_proba" in model.methods or name == "multi_output"
            else None
        )
        if options and name.endswith("mixture"):
            options = None
        made = to_onnx(model.made, model.x[:1], options=options, target_opset=OPSETS)
        path.write_bytes(made.SerializeToString())

        def feeds(shapes: dict[str, list[Any]], batch: int) -> dict[str, np.ndarray]:
            given = rows(batch)
            if len(shapes) == 1:
                (shape,) = shapes.values()
                return dict.fromkeys(
                    shapes, given.reshape(len(given), -1) if len(shape) == 2 else given
                )
            return {each: given[:, i : i + 1] for i, each in enumerate(shapes)}

        def origin(feeds: dict[str, np.ndarray]) -> list[Any]:
            given = (
                np.concatenate(list(feeds.values()), 1)
                if len(feeds) > 1
                else next(iter(feeds.values()))
            )
            return results_of(model, given.reshape(-1) if model.x.ndim == 1 else given)

        origin_tolerance = 1e-2 if name in CANCELLING else ORIGIN_TOLERANCE
        return Case(path, feeds, origin, TOLERANCE, origin_tolerance, NOISE.get(name, ()))  # fmt: skip

    return written
