# SPDX-License-Identifier: Apache-2.0
"""Names and keywords that other libraries have for ours mean there what they mean here.

The tables come from `names` of the operator files, and the calls from their samples: each name is called with the samples of
its operator, in Tenon and in the library that has the name, by position and by the library's keywords, with what
the samples leave out at its default. NumPy is always asked, PyTorch and Paddle where they are installed
(scripts/nightly.sh, stage `peers`). The namespaces of tenon.compat are also held against their libraries form by
form, in tests/fuzz; this test needs no line for a new name.
"""

import contextlib
import importlib
import inspect
import pathlib
import re
import sys
import warnings

import numpy as np
import pytest
import tenon
from samples import CASES, OPERATORS, default
from tenon._spellings import FUNCTIONS, KEYWORDS, SIGNATURES, SPELLINGS, TAKEN
from tenon.func.rules import loops

LIBRARIES = ("numpy", "torch", "paddle")

# Names whose results differ on purpose: library, regular expression of names, and the reason.
DIFFERENCES = [
    (".*", "empty_like", "elements that are not written"),
    (".*", "nn.functional.dropout|rand_like|randn_like", "random numbers"),
    (".*", "linalg.eigh|linalg.svd", "vectors have either sign"),
    ("paddle", "as_strided", "the offset counts elements here and bytes in Paddle"),
    ("paddle", "clamp_", "Paddle 3.3.1 leaves elements that are beyond bounds that are tensors"),
    ("paddle", "dist|stanh", "Paddle rounds constants and results to single precision in float64"),
]

# Lines with keywords that operators take, run with the names of Tenon and of each library that has them.
KEYWORD_LINES = """
sum(x, dim=0)
sum(x, axis=1, keepdims=True)
sum(x, dim=1, keepdims=True)
mean(x, dim=1)
mean(x, axis=0, keepdims=True)
prod(y, dim=1)
prod(y, axis=0, keepdims=True)
std(x, axis=1, ddof=1)
std(x, axis=0, ddof=0, keepdims=True)
std(x, dim=1, correction=1)
std(x, dim=1, unbiased=False)
var(x, axis=1, ddof=1)
var(x, dim=0, unbiased=True)
var(x, unbiased=False)
add(x, y, alpha=2)
sub(x, y, alpha=0.5)
div(x, y, rounding_mode="floor")
div(x, y, rounding_mode="trunc")
zeros(size=(2, 3))
nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=None, dropout_p=0.0, is_causal=True)
all(x, axis=0, keepdims=True)
any(x, dim=1)
max(x, axis=1, keepdims=True)
max(x, dim=1)
min(x, dim=0)
argmax(x, axis=1, keepdims=True)
argmax(x, dim=1)
argmin(x, dim=0)
cumsum(x, dim=1)
cumprod(y, dim=1)
softmax(x, dim=1)
log_softmax(x, dim=0)
logsumexp(x, dim=1)
count_nonzero(x, dim=1)
count_nonzero(x, axis=0, keepdims=True)
median(x, axis=1, keepdims=True)
argsort(x, dim=0)
cat([x, y], dim=1)
stack([x, y], dim=1)
unsqueeze(x, dim=1)
squeeze(x[:1], dim=0)
split(x, [1, 2], dim=0)
diff(x, dim=0)
full((2, 3), fill_value=2.5)
full_like(x, fill_value=2.5)
eye(3, 4, k=1)
tril(x, k=1)
triu(x, k=-1)
diag(v, k=1)
topk(x, k=2)
topk(x, k=2, dim=0)
clamp(x, min=-1.0)
clamp(x, max=1.0)
clamp(x, min=2.0, max=1.0)
array([[1, 2], [3, 4]])
array([1.5, 2.5])
as_tensor([1.5, 2.5])
"""

# Their differences on purpose. A row whose line agrees fails, so that none outlives its reason.
KEYWORD_DIFFERENCES = {
    ("torch", "max(x, dim=1)"): "the values alone; argmax() gives their indices",
    ("torch", "min(x, dim=0)"): "as max",
    ("torch", "max(x, axis=1, keepdims=True)"): "as max",
    (
        "torch",
        "median(x, axis=1, keepdims=True)",
    ): "of an even number the mean of the middle two, as NumPy's; the values alone",
    (
        "numpy",
        "full((2, 3), fill_value=2.5)",
    ): "of the default dtype, float32; tenon.compat.numpy has NumPy's",
    ("numpy", "eye(3, 4, k=1)"): "as full",
    ("numpy", "array([1.5, 2.5])"): "as full",
}

_X = np.array([[1.5, -2.0, 0.0, 4.0], [-0.5, 3.0, -7.0, 2.0], [6.0, -1.0, 2.5, -3.5]])
_Y = np.array([[1.0, 2.0, -1.0, 4.0], [2.0, 3.0, 5.0, -2.0], [6.0, 1.0, 2.0, 3.0]])
DATA = {"x": _X, "y": _Y, "v": np.array([2.0, -1.0, 0.5, 3.0])}


def library_or_skip(name):
    # A folder of sources in tests/compat has the name of Paddle.
    pytest.importorskip(
        "paddle.nn" if name == "paddle" else name, reason=f"{name} is compared with"
    )
    return sys.modules[name]


def at(module, path):
    """What lies at a dotted path; LookupError if nothing does."""
    for part in path.split("."):
        if inspect.ismodule(module) and not hasattr(module, part):
            with contextlib.suppress(ImportError):
                importlib.import_module(f"{module.__name__}.{part}")
        if not hasattr(module, part):
            raise LookupError(path)
        module = getattr(module, part)
    return module


def given_to(library, value):
    """An argument of a sample as a library takes it."""
    if isinstance(value, np.ndarray):
        if library == "numpy":
            return value.copy()
        make = {"torch": "from_numpy", "paddle": "to_tensor", "tenon": "tensor"}[library]
        return getattr(sys.modules[library], make)(value.copy())
    if isinstance(value, (list, tuple)):
        return type(value)(given_to(library, each) for each in value)
    return value


def told(result):
    """A result as nested lists of arrays, of any library."""
    if isinstance(result, dict):
        return [told(each) for each in result.values()]
    if isinstance(result, (list, tuple)):
        return [told(each) for each in result]
    if not hasattr(result, "shape") and not isinstance(result, (bool, int, float, complex)):
        raise TypeError(f"expected arrays and numbers, got {result!r}")
    if hasattr(result, "detach"):
        result = result.detach()
    if hasattr(result, "numpy"):
        result = result.numpy()
    return np.asarray(result)


def apart(ours, theirs):
    """What differs between two results, in words; None if nothing does."""
    if isinstance(ours, list) or isinstance(theirs, list):
        if not (isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs)):
            return "another number of results"
        return next(filter(None, map(apart, ours, theirs)), None)
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, not {theirs.shape}"
    if ours.dtype != theirs.dtype:
        return f"dtype {ours.dtype}, not {theirs.dtype}"
    single = ours.dtype in (np.float32, np.complex64)
    close = np.allclose(ours, theirs, rtol=1e-5 if single else 1e-9, atol=1e-12, equal_nan=True)
    return None if close else f"{ours.tolist()}, not {theirs.tolist()}"


def answer(function, args, kwargs):
    """The result, or None where the call is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return told(function(*args, **kwargs))
    except Exception:  # of which kind is no matter of this test
        return None


def compared(library, ours, theirs, args, kwargs=None):
    """What differs; False where one of them refuses, None where they agree."""
    kwargs = kwargs or {}
    want = answer(
        theirs, given_to(library, args), {k: given_to(library, v) for k, v in kwargs.items()}
    )
    if want is None:
        return False
    got = answer(
        ours, given_to("tenon", args), {k: given_to("tenon", v) for k, v in kwargs.items()}
    )
    return False if got is None else apart(got, want)


def by_position(case):
    """The arguments of a sample without keywords; those between are at their defaults. None if one has none."""
    args, named = list(case.args), dict(case.kwargs)
    for each in OPERATORS[case.op]["params"][len(args) :]:
        if not named:
            break
        if each["name"] not in named and each["default"] is None and not each["optional"]:
            return None
        args.append(named.pop(each["name"], default(each["default"])))
    return tuple(args)


def drawn(operator):
    """Arguments for an operator that needs tensors alone, of its domain: floats, whole numbers and booleans."""
    known = OPERATORS[operator]
    needed = [each for each in known["params"] if each["default"] is None and not each["optional"]]
    if any(each["type"] != "Tensor" for each in needed):
        return []
    rng = np.random.default_rng(7)
    limits = [known["domain"].get(each["name"], (-3.0, 3.0)) for each in needed]
    made = [
        tuple(np.asarray(rng.uniform(low, high, shape)) for low, high in limits)
        for shape in ((3, 4), (2, 0), (), (3, 3))
    ]
    whole = tuple(np.asarray(np.round(each), np.int64) for each in made[0])
    return [*made, whole, tuple(each > 0 for each in whole)]


SAMPLES = {}
for _case in CASES:
    if (_args := by_position(_case)) is not None:
        SAMPLES.setdefault(_case.op, []).append(_args)


def samples_of(operator):
    """Arguments by position: the samples of the operator's entry, or drawn ones. Random operators have none."""
    if "random" in OPERATORS[operator]["tags"]:
        return []
    return SAMPLES.get(operator) or drawn(operator)


def on_purpose(library, name):
    return any(
        re.fullmatch(of, library) and re.fullmatch(names, name) for of, names, _ in DIFFERENCES
    )


class Found:
    """What calls of one library found."""

    def __init__(self, library):
        self.library, self.asked, self.different = library, set(), []

    def add(self, name, form, detail):
        if detail is False:
            return
        self.asked.add(name)
        of = form if form.endswith("_") else name
        if detail is not None and not on_purpose(self.library, of):
            self.different.append(f"{name}, {form}: {detail}")


@pytest.mark.parametrize("library", LIBRARIES)
def test_names_of_tenon_itself(library):
    module = library_or_skip(library)
    found = Found(library)
    for name, operator in SPELLINGS["tenon"].items():
        assert getattr(tenon, name) is getattr(tenon, operator) and name in dir(tenon)
        for args in samples_of(operator):
            if (theirs := getattr(module, name, None)) is not None:
                found.add(name, "function", compared(library, getattr(tenon, name), theirs, args))
            for method in (name, f"{name}_"):
                if not isinstance(args[0], np.ndarray) or not hasattr(tenon.Tensor, method):
                    continue

                def call(x, *rest, method=method):
                    return getattr(x, method)(*rest)

                found.add(name, method, compared(library, call, call, args))
    assert found.different == []
    if library == "torch":  # which has them all
        assert found.asked == {name for name in SPELLINGS["tenon"] if name not in ("power",)}


@pytest.mark.parametrize("library", LIBRARIES)
def test_operators_by_the_names_of_a_library(library):
    module = library_or_skip(library)
    namespace = importlib.import_module(f"tenon.compat.{library}")
    found = Found(library)
    for name, operator in SPELLINGS[library].items():
        # Paddle dies of arguments that it does not expect; what is written out for it is asked in tests/fuzz.
        if operator not in OPERATORS or (library == "paddle" and name not in SIGNATURES["paddle"]):
            continue
        try:
            ours, theirs = at(namespace, name), at(module, name)
        except (LookupError, AttributeError):
            continue  # a counterpart that the namespace lacks
        positional = [
            each.name
            for each in inspect.signature(ours).parameters.values()
            if each.kind is each.POSITIONAL_OR_KEYWORD
        ]
        for args in samples_of(operator):
            found.add(name, "by position", compared(library, ours, theirs, args))
            if len(args) <= len(positional):
                by_name = dict(zip(positional, args, strict=False))
                found.add(name, "by keyword", compared(library, ours, theirs, (), by_name))
    assert found.different == []
    signed = {name for name in SIGNATURES.get(library, {}) if name in SPELLINGS[library]}
    assert len(found.asked & signed) >= 0.9 * len(signed), sorted(signed - found.asked)


# Names that the library does not have, and why we have them.
NOT_THERE = {
    ("numpy", "float_"): "of NumPy 1",
    ("numpy", "complex_"): "of NumPy 1",
    ("numpy", "array_api"): "of NumPy 1",
    ("torch", "float8_e4m3"): "Tenon's name of float8_e4m3fn",
    ("torch", "matrix_transpose"): "a method of PyTorch's tensors",
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_name_is_there(library):
    module = library_or_skip(library)
    missing = set()
    for name in [*SPELLINGS[library], *FUNCTIONS[library]]:
        try:
            if not name.startswith("torchvision."):  # a package of its own
                at(module, name)
        except LookupError:
            missing.add((library, name))
    assert missing == {row for row in NOT_THERE if row[0] == library}


class Names(dict):
    """The names of a library, and the data of the lines."""

    def __init__(self, library):
        super().__init__({name: given_to(library, value) for name, value in DATA.items()})
        self.module = sys.modules[library]

    def __missing__(self, name):
        if not hasattr(self.module, name):
            raise KeyError(name)
        return getattr(self.module, name)


@pytest.mark.parametrize("library", LIBRARIES)
def test_keywords_that_operators_take(library):
    library_or_skip(library)
    different, agreed = {}, set()
    for line in KEYWORD_LINES.strip().splitlines():
        code = compile(line, line, "eval")

        def run(names, code=code):
            return eval(code, {"__builtins__": {}}, names)

        want = answer(run, (Names(library),), {})
        if want is None:
            continue
        got = told(run(Names("tenon")))
        if library != "numpy" and line.startswith("array("):
            continue
        if (detail := apart(got, want)) is None:
            agreed.add(line)
        else:
            different[line] = detail
    expected = {line for lib, line in KEYWORD_DIFFERENCES if lib == library}
    assert different.keys() == expected, different
    assert len(agreed) >= {"numpy": 12, "torch": 25, "paddle": 5}[library]


def test_lines_have_every_keyword():
    for keyword in TAKEN:
        assert f"{keyword}=" in KEYWORD_LINES, keyword


def test_batches_know_the_keywords():
    before = loops()
    x = tenon.arange(12.0).reshape(3, 2, 2)
    assert tenon.func.vmap(lambda each: tenon.tril(each, k=-1))(x).sum().item() == 18.0
    assert tenon.func.vmap(lambda each: tenon.sum(each, dim=0, keepdims=True))(x).shape == (3, 1, 2)
    assert loops() == before  # neither ran sample by sample


def test_keywords_are_explained():
    x = tenon.tensor([[1.0, 2.0]])
    for keyword, message in {"input": "did you mean 'x'", "dims": "did you mean 'axis'"}.items():
        with pytest.raises(TypeError, match=f"unknown keyword '{keyword}'; {message}"):
            tenon.flip(**{keyword: x})
    assert set(TAKEN) <= set(KEYWORDS)


def test_suggestions_know_the_names_of_libraries():
    for name, ours in {
        "greater_than": "greater",
        "logsigmoid": "log_sigmoid",
        "expit": "sigmoid",
    }.items():
        with pytest.raises(AttributeError, match=f"'{name}'; did you mean '{ours}'"):
            getattr(tenon, name)


def test_names_agree_with_the_lines_of_pytorchs_calls():
    """`opdefs/aten` says of calls of PyTorch's graphs what operators they are, and was written apart from the names."""
    line = re.compile(r"  ([a-z_0-9]+)(?:\.\w+)?\([^)]*\): ([a-z_0-9]+)\([^()]*\)")
    folder = pathlib.Path(__file__).parents[2] / "opdefs" / "aten"
    texts = [text for each in folder.glob("*.yaml") for text in each.read_text().splitlines()]
    calls = [found.groups() for text in texts if (found := line.fullmatch(text))]
    known = [(name, operator) for name, operator in calls if name in SPELLINGS["torch"]]
    wrong = [(name, ours) for name, ours in known if SPELLINGS["torch"][name] != ours]
    assert wrong == [] and len(known) >= 90
