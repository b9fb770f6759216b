# SPDX-License-Identifier: Apache-2.0
"""The keyword `generator` of everything that draws: the numbers are the generator's, and the device's own stream stays
where it is."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import tenon
from tenon import distributions, nn, random
from tenon._tensor.generators import draw_from
from tenon.nn import functional as F
from tenon.nn import init

X = tenon.arange(24, dtype=tenon.float32).reshape(4, 6) / 8 - 1
P = tenon.full([4, 6], 0.5)
HEADS = X.reshape(1, 1, 4, 6)
IMAGES = tenon.arange(512, dtype=tenon.float32).reshape(2, 4, 8, 8)
GRAPH = tenon.tensor([0, 1, 2, 3, 0, 2]), tenon.tensor([0, 3, 6])
TREE = tenon.tensor([[1, 3], [1, 4], [2, 5], [2, 6]]), tenon.tensor([1, 2, 3, 4, 5, 6])

OPERATORS = {
    "rand": lambda **k: tenon.rand(9, **k),
    "randn": lambda **k: tenon.randn(9, **k),
    "uniform": lambda **k: tenon.uniform([9], **k),
    "normal": lambda **k: tenon.normal([9], **k),
    "randint": lambda **k: tenon.randint(0, 1000, [9], **k),
    "randperm": lambda **k: tenon.randperm(30, **k),
    "bernoulli": lambda **k: tenon.bernoulli(P, **k),
    "uniform_like": lambda **k: tenon.uniform_like(X, **k),
    "normal_like": lambda **k: tenon.normal_like(X, **k),
    "multinomial": lambda **k: tenon.multinomial(P, 3, **k),
    "dropout": lambda **k: X.dropout(0.5, **k),
    "dropout_add": lambda **k: tenon.dropout_add(X, X, 0.5, **k),
    "attention": lambda **k: tenon.scaled_dot_product_attention(HEADS, HEADS, HEADS, dropout=0.5, **k),
    "nce": lambda **k: tenon.nce(X, tenon.zeros(4, 1, dtype="int64"), tenon.randn(50, 6, generator=tenon.Generator(seed=1)), **k),
    "nce of probabilities": lambda **k: tenon.nce(X, tenon.zeros(4, 1, dtype="int64"), X[:, :1] * X[:1], None, P[0, :4] / 2, **k),
    "shuffle_batch": lambda **k: tenon.shuffle_batch(X.reshape(12, 2), **k)[1],
    "tdm_sampler": lambda **k: tenon.tdm_sampler(tenon.tensor([0, 1, 2, 3]), *TREE, [1, 2], [0, 2, 6], **k)[0],
    "sample_neighbors": lambda **k: tenon.sample_neighbors(*GRAPH, tenon.tensor([0, 1]), 1, **k)[0],
}  # fmt: skip
FUNCTIONS = {
    "dropout": lambda **k: F.dropout(X, **k),
    "dropout1d": lambda **k: F.dropout1d(X, **k),
    "dropout2d": lambda **k: F.dropout2d(IMAGES, **k),
    "dropout3d": lambda **k: F.dropout3d(IMAGES, **k),
    "alpha_dropout": lambda **k: F.alpha_dropout(X, training=True, **k),
    "feature_alpha_dropout": lambda **k: F.feature_alpha_dropout(IMAGES, training=True, **k),
    "rrelu": lambda **k: F.rrelu(X, training=True, **k),
    "gumbel_softmax": lambda **k: F.gumbel_softmax(X, **k),
    "class_center_sample": lambda **k: F.class_center_sample(tenon.tensor([3, 5]), 20, 9, **k)[1],
    "fractional_max_pool2d": lambda **k: F.fractional_max_pool2d(IMAGES, 2, 5, **k),
}
MODULES = {
    each.__name__: each
    for each in (nn.Dropout, nn.Dropout2d, nn.AlphaDropout, nn.FeatureAlphaDropout, nn.RReLU)
}
SAMPLERS = {
    "beta": (1.0, 2.0), "binomial": (40, 0.5), "cauchy": (), "chi_square": (2.0,), "dirichlet": (P,),
    "exponential": (), "gamma": (2.0,), "geometric": (0.1,), "log_normal": (), "poisson": (30.0,),
    "student_t": (3.0,), "truncated_normal": (), "von_mises": (0.0, 1.0),
}  # fmt: skip
FILLS = {
    "uniform_": (), "normal_": (), "random_": (1000,), "bernoulli_": (0.5,), "exponential_": (),
    "geometric_": (0.1,), "cauchy_": (), "log_normal_": (),
}  # fmt: skip
INITIALISERS = {
    name: getattr(init, name)
    for name in ("uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_",
                 "kaiming_normal_", "orthogonal_")
}  # fmt: skip
DISTRIBUTIONS = {
    "Normal": distributions.Normal(P, P),
    "Bernoulli": distributions.Bernoulli(P),
    "Categorical": distributions.Categorical(P),
    "Gamma": distributions.Gamma(P, P),
    "Independent": distributions.Independent(distributions.Laplace(P, P), 1),
    "LogNormal": distributions.LogNormal(P, P),
}


def drawn_with(name, caller):
    """A function that draws by a sampler, or fills a tensor."""
    table, arguments = caller
    if table is FILLS:
        return lambda **k: getattr(tenon.empty(40), name)(*arguments, **k)
    shape = {} if name == "dirichlet" else {"shape": 40}
    return lambda **k: getattr(random, name)(*arguments, **shape, **k)


DRAWN = [
    *(pytest.param(call, id=f"tenon.{name}") for name, call in OPERATORS.items()),
    *(pytest.param(call, id=f"functional.{name}") for name, call in FUNCTIONS.items()),
    *(
        pytest.param(lambda generator=None, make=make: make(generator=generator)(IMAGES), id=name)
        for name, make in MODULES.items()
    ),
    *(pytest.param(drawn_with(n, (SAMPLERS, a)), id=f"random.{n}") for n, a in SAMPLERS.items()),
    *(pytest.param(drawn_with(n, (FILLS, a)), id=f"Tensor.{n}") for n, a in FILLS.items()),
    *(
        pytest.param(lambda fill=fill, **k: fill(tenon.empty(9, 9), **k), id=f"init.{name}")
        for name, fill in INITIALISERS.items()
    ),
    *(
        pytest.param(lambda each=each, **k: each.sample([5], **k), id=f"{name}.sample")
        for name, each in DISTRIBUTIONS.items()
    ),
]


@pytest.mark.parametrize("draw", DRAWN)
def test_numbers_are_those_of_the_generator(draw):
    generator = tenon.Generator(seed=3)
    outside = random.get_state("cpu")
    first, second = draw(generator=generator).tolist(), draw(generator=generator).tolist()
    assert random.get_state("cpu") == outside
    assert generator.get_state()[0] == 3 and generator.get_state()[1] > 0
    generator.manual_seed(3)
    assert draw(generator=generator).tolist() == first
    with tenon.Generator(seed=3):  # the same stream in place of the device's
        assert draw().tolist() == first and draw().tolist() == second


@pytest.mark.parametrize("draw", DRAWN)
def test_the_device_draws_where_there_is_no_generator(draw):
    with random.fork_rng():
        tenon.manual_seed(3)
        first = draw(generator=None).tolist()
        state = random.get_state("cpu")
        assert state[0] == 3 and state[1] > 0
        tenon.manual_seed(3)
        assert draw().tolist() == first


@pytest.mark.parametrize("draw", DRAWN)
def test_what_is_no_generator_is_refused(draw):
    expected = "expected a tenon.random.Generator as generator, got int"
    with pytest.raises(TypeError, match=expected):
        draw(generator=5)


@pytest.mark.parametrize("draw", DRAWN)
def test_a_generator_of_another_device_is_refused_or_decides_the_device(draw):
    generator = tenon.Generator("meta", seed=3)
    expected = "expected a generator of the device cpu:0 that draws, got one of meta:0"
    try:
        drawn = draw(generator=generator)
    except ValueError as error:
        elsewhere = "expected a tensor with data, got one on the meta device"  # orthogonal_ draws on any device
        assert expected in str(error) or elsewhere in str(error)
    else:  # no tensor and no `device` said where
        assert drawn.device.kind == "meta"


@pytest.mark.parametrize(
    "draw", [OPERATORS["dropout"], MODULES["RReLU"], drawn_with("normal_", (FILLS, ()))]
)
def test_tensors_decide_where_calls_draw(draw):
    generator = tenon.Generator("meta", seed=3)
    with pytest.raises(
        ValueError, match="generator of the device cpu:0 that draws, got one of meta:0"
    ):
        draw(generator=generator) if draw is not MODULES["RReLU"] else draw(generator=generator)(X)


def test_device_and_generator_of_a_call_agree():
    expected = (
        r"uniform\(\): expected a generator of the device meta:0 that draws, got one of cpu:0"
    )
    with pytest.raises(ValueError, match=expected):
        tenon.rand(2, device="meta", generator=tenon.Generator("cpu", seed=3))
    assert tenon.rand(2, generator=tenon.Generator("meta", seed=3)).device.kind == "meta"


@pytest.mark.parametrize("name", ["dropout", "bernoulli", "uniform", "randperm", "multinomial"])
def test_compiled_functions_draw_on(name):
    """A program sets no seeds: calls with a generator are run as they are written, by the same numbers."""
    generator = tenon.Generator(seed=3)

    def function(x):
        return x + OPERATORS[name](generator=generator).sum()

    compiled = tenon.compile(function)
    x = tenon.zeros(2)
    eager = [function(x).tolist() for _ in range(4)]
    generator.manual_seed(3)
    assert [compiled(x).tolist() for _ in range(4)] == eager
    assert len({str(each) for each in eager}) > 1 or name == "randperm"


@pytest.mark.parametrize("name", ["dropout", "bernoulli", "normal_like", "multinomial"])
def test_programs_draw_from_the_stream_of_the_device(name):
    draw = OPERATORS[name]

    def function(x):
        return x + draw().to("float32").sum()

    program = tenon.export(function, tenon.zeros(2))
    with random.fork_rng():
        tenon.manual_seed(3)
        eager = [function(tenon.zeros(2)).tolist() for _ in range(3)]
        state = random.get_state("cpu")
        tenon.manual_seed(3)
        assert [program(tenon.zeros(2)).tolist() for _ in range(3)] == eager
        assert random.get_state("cpu") == state
        with tenon.Generator(seed=3):
            assert program(tenon.zeros(2)).tolist() == eager[0]


def test_calls_of_two_threads_follow_one_another():
    """If the second one began inside of the first and ended behind it, generators would swap their streams."""
    first_began, second_began, first_ended = Event(), Event(), Event()

    def first(device):
        first_began.set()
        second_began.wait(0.2)  # in vain: the second one waits
        return tenon.randn(4, device=device)

    def second(device):
        second_began.set()
        first_ended.wait(5)
        return tenon.randn(4, device=device)

    outside = random.get_state("cpu")
    generators = [tenon.Generator(seed=seed) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(draw_from, generators[0], first)
        first_began.wait(5)
        other = threads.submit(draw_from, generators[1], second)
        results = [one.result().tolist()]
        first_ended.set()
        results.append(other.result().tolist())
    assert random.get_state("cpu") == outside
    assert [each.initial_seed() for each in generators] == [1, 2]
    again = [tenon.Generator(seed=seed) for seed in (1, 2)]
    assert results == [tenon.randn(4, generator=each).tolist() for each in again]
