# SPDX-License-Identifier: Apache-2.0
"""Operators that look at data on the host. Where they check them, their programs do so in each run; where data decide what
they call, a program, which keeps the calls alone, is refused unless the data are constants."""

import contextlib

import numpy as np
import pytest
import tenon

rng = np.random.default_rng(5)


def floats(*shape):
    return tenon.tensor(rng.standard_normal(shape).astype("float32"))


ROWS = floats(4, 3)
QUERY, CACHE = floats(2, 4, 3), floats(5, 2, 2, 3)
PACKED = floats(6, 2, 3)
LOGITS = floats(2, 3, 3, 4)

# Of each operator: a function of the tensor that is checked, its name in the error, data that pass the check, and data that do
# not, of the same shape and dtype.
CHECKS = {
    "one_hot": (lambda x: tenon.one_hot(x, 3), "indices", [0, 2], [0, 7]),
    "multinomial": (lambda x: tenon.multinomial(x, 1), "weights", [0.5, 1.0], [-1.0, 1.0]),
    "bernoulli": (lambda x: tenon.bernoulli(x), "probabilities", [0.0, 1.0], [0.5, 3.0]),
    "sequence_pad": (lambda x: tenon.sequence_pad(ROWS, x, 3), "lengths", [1, 2], [1, 9]),
    "sequence_reverse": (lambda x: tenon.sequence_reverse(ROWS, x), "lengths", [3] * 4, [4] * 4),
    "viterbi_decode": (
        lambda x: tenon.viterbi_decode(LOGITS[0], tenon.ones([4, 4]), x)[0],
        "lengths",
        [1, 2, 3],
        [0, 2, 3],
    ),
    "rnnt_loss": (
        lambda x: tenon.rnnt_loss(LOGITS, tenon.ones([2, 2], dtype="int64"), x, x * 0),
        "input_lengths",
        [1, 3],
        [1, 5],
    ),
    "paged_attention": (
        lambda x: tenon.paged_attention(QUERY, CACHE, CACHE, tenon.tensor([[4, 1], [2, 3]]), x),
        "lengths",
        [4, 2],
        [5, 2],
    ),
    "cached_attention": (
        lambda x: tenon.cached_attention(QUERY, CACHE[:2], CACHE[:2], x),
        "lengths",
        [2, 1],
        [3, 1],
    ),
    "varlen_attention": (
        lambda x: tenon.varlen_attention(PACKED, PACKED, PACKED, x, x, 3, 3),
        "offsets",
        [0, 3, 6],
        [0, 3, 9],
    ),
    "moe_dispatch": (lambda x: tenon.moe_dispatch(ROWS, x, 3)[0], "experts", [[0]] * 4, [[3]] * 4),
    "shard_index": (lambda x: tenon.shard_index(x, 20, 2, 0), "indices", [1, 12], [1, 20]),
    "quantile": (lambda x: tenon.quantile(ROWS, x), "q", [0.5, 1.0], [0.5, 1.5]),
    "scatter_reduce": (
        lambda x: tenon.scatter_reduce(ROWS[:, 0], x, ROWS[:2, 0], reduce="amax"),
        "index",
        [0, 3],
        [0, 4],
    ),
}


def same(a, b):
    return np.array_equal(a.detach().numpy(), b.detach().numpy(), equal_nan=True)


@contextlib.contextmanager
def seeded():
    tenon.manual_seed(4)
    yield


@pytest.mark.parametrize("name", CHECKS)
def test_programs_go_on_to_check(name, tmp_path):
    function, what, good, bad = CHECKS[name]
    good, bad = tenon.tensor(good), tenon.tensor(bad)
    program = tenon.export(function, (good,))
    program.save(tmp_path / "program")
    for run in (program, tenon.jit.load(tmp_path / "program")):
        with seeded():
            want = function(good)
        with seeded():
            assert same(run(good), want)
        with pytest.raises((ValueError, IndexError), match=what) as caught:
            function(bad)
        eager = str(caught.value).partition("expected")[2]
        with pytest.raises(type(caught.value)) as in_program:
            run(bad)
        assert eager in str(in_program.value) and name in str(in_program.value)


@pytest.mark.parametrize("name", CHECKS)
def test_compiled_functions_go_on_to_check(name):
    function, what, good, bad = CHECKS[name]
    compiled = tenon.compile(lambda x: function(x * 1))
    for _ in range(4):
        compiled(tenon.tensor(good))
    assert "a program of" in compiled.explain()
    with pytest.raises((ValueError, IndexError), match=what):
        compiled(tenon.tensor(bad))


@pytest.mark.parametrize("name", CHECKS)
def test_constants_are_checked_when_they_are_recorded(name):
    function, what, good, bad = CHECKS[name]
    tenon.export(lambda scale: function(tenon.tensor(good)) * scale, (tenon.tensor(2),))
    with pytest.raises((ValueError, IndexError), match=what):
        tenon.export(lambda scale: function(tenon.tensor(bad)) * scale, (tenon.tensor(2),))


def test_tensors_from_outside_are_checked_in_each_call():
    indices = tenon.tensor([0, 1])
    program = tenon.export(lambda x: tenon.one_hot(indices, 3) * x, (tenon.ones(3),))
    assert program(tenon.ones(3) * 2).tolist() == [[2, 0, 0], [0, 2, 0]]
    indices.copy_(tenon.tensor([0, 9]))
    with pytest.raises(IndexError, match=r"\[one_hot\] expected indices from 0 to 2, got 9"):
        program(tenon.ones(3))


def test_checks_within_branches_and_loops_are_kept():
    def function(x, at):
        return tenon.jit.cond(
            x.sum() > 0, lambda: tenon.one_hot(at, 3) * x, lambda: x * tenon.ones(3)
        )

    program = tenon.export(function, (tenon.ones(3), tenon.tensor(1)))
    assert program(tenon.ones(3), tenon.tensor(2)).tolist() == [0, 0, 1]
    assert program(-tenon.ones(3), tenon.tensor(7)).tolist() == [-1, -1, -1]  # as eager: no call
    with pytest.raises(IndexError, match="got 7"):
        program(tenon.ones(3), tenon.tensor(7))


def test_gradients_pass_checks():
    x, q = floats(5), tenon.tensor([0.3, 0.6], requires_grad=True)
    program = tenon.export(lambda q: tenon.quantile(x, q), (q,))
    (got,) = tenon.grad(program(q).sum(), [q])
    (want,) = tenon.grad(tenon.quantile(x, q).sum(), [q])
    assert same(got, want)


# -- what data decide ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: tenon.segment_sum(ROWS[:2], x), "`segment_sum` at .*pass the count"),
        (lambda x: tenon.segment_max(ROWS[:2], x), "`segment_max` at .*pass the count"),
    ],
)
def test_shapes_that_composites_read_from_data_are_refused(function, text):
    with pytest.raises(NotImplementedError, match=text):
        tenon.export(function, (tenon.tensor([1, 1]),))


def test_a_number_of_rows_from_outside_is_no_data():
    program = tenon.export(lambda i: tenon.segment_sum(ROWS, i, 3), (tenon.tensor([0, 0, 1, 2]),))
    index = tenon.tensor([2, 1, 1, 1])
    assert same(program(index), tenon.segment_sum(ROWS, index, 3))


def test_shapes_that_follow_from_constants_are_known():
    x = floats(4, 2)
    for made in (lambda: tenon.tensor([0, 2, 1, 2]), lambda: tenon.arange(4) // 2):
        program = tenon.export(lambda x, made=made: tenon.segment_sum(x, made()), (x,))
        assert same(program(x * 2), tenon.segment_sum(x * 2, made()))
    outside = tenon.tensor([0, 2, 1, 2])

    def written(x):
        index = tenon.zeros([4], dtype="int64")
        index[0:1].copy_(x[:1, 0].to("int64"))
        return tenon.segment_sum(x, index)

    for made in (
        lambda: outside,
        lambda: tenon.randint(0, 3, [4]),
    ):  # may be others in the next run
        with pytest.raises(NotImplementedError, match="pass the count"):
            tenon.export(lambda x, made=made: tenon.segment_sum(x, made()), (x,))
    with pytest.raises(NotImplementedError, match="pass the count"):
        tenon.export(written, (x,))


def test_seeds_and_generators_are_refused():
    generator = tenon.Generator(seed=3)

    def with_generator(x):
        with generator:
            return x * tenon.rand(3)

    def forked(x):
        with tenon.random.fork_rng():
            return x * tenon.rand(3)

    def seeded(x):
        tenon.manual_seed(1)
        return x * tenon.rand(3)

    for function in (with_generator, forked, seeded):
        with pytest.raises(NotImplementedError, match="sets the seed of random numbers"):
            tenon.export(function, (tenon.ones(3),))
        twin, compiled = [], tenon.compile(function)
        for results, call in ((twin, function), (twin, compiled)):
            generator.manual_seed(5)
            tenon.manual_seed(2)
            results.append([call(tenon.ones(3)).tolist() for _ in range(4)])
        assert twin[0] == twin[1]
        assert "sets the seed of random numbers" in compiled.explain()


def test_states_that_stay_as_they_are_may_be_set():
    def function(x):
        tenon.random.set_state(tenon.random.get_state())
        return x * 2

    assert tenon.export(function, (tenon.ones(2),))(tenon.ones(2) * 3).tolist() == [6, 6]
