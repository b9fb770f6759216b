# SPDX-License-Identifier: Apache-2.0
"""Writes at indices, in place: the elements that are named and no others, whatever the strides, against NumPy."""

import re

import numpy as np
import pytest
import tenon
from running import skip_unserved

RNG = np.random.default_rng(5)
T = tenon.tensor
DTYPES = "bool uint8 int8 int16 uint16 int32 int64 float32 float64 float16 complex64 complex128"


def numbers(shape, dtype="float32"):
    values = RNG.integers(-4, 5, shape)
    return (values > 0 if dtype == "bool" else abs(values) if dtype[0] == "u" else values).astype(
        dtype
    )


def accumulated(x, key, values):
    np.add.at(x, key, values)


WAYS = {  # name: (an array whose memory is not dense, the part of it that is written)
    "dense": (lambda: numbers((6, 5, 4)), lambda a: a),
    "rows apart": (lambda: numbers((12, 5, 4)), lambda a: a[::2]),
    "columns apart": (lambda: numbers((6, 5, 9)), lambda a: a[:, :, 1::2]),
    "reversed": (lambda: numbers((6, 5, 4)), lambda a: a[::-1, :, ::-1]),
    "transposed": (lambda: numbers((4, 5, 6)), lambda a: a.T),
    "inside": (lambda: numbers((8, 7, 6)), lambda a: a[1:7, 2:, 1:5]),
}
KEYS = {
    "rows": (np.array([4, -6, 2]),),
    "repeated": (np.array([3, 0, 3, 3]),),
    "matrix": (np.array([[1, 2], [-1, 0]]),),
    "pairs": (np.array([0, 5, 3]), np.array([4, -5, 1])),
    "grid": (np.array([[0], [5]]), np.array([1, -1, 3])),
    "elements": (np.array([0, 5]), np.array([4, 0]), np.array([3, -4])),
    "second": (slice(None), np.array([4, 0])),
    "last": (slice(None), slice(None), np.array([3, 1])),
    "no rows": (np.array([], dtype=np.int64),),
}


def tensors_in(key, device):
    return tuple(T(k, device=device) if isinstance(k, np.ndarray) else k for k in key)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", ["dense", "row", "number", "column"])
def test_assignment_at_indices(way, key, value, device):
    make, part = WAYS[way]
    whole = make()
    got = T(whole, device=device)
    want = part(whole)[KEYS[key]].shape
    shape = {"dense": want, "row": want[-1:], "number": (), "column": (*want[-2:-1], 1)}[value]
    values = numbers(shape)
    part(whole)[KEYS[key]] = values
    given = float(values) if value == "number" else T(values, device=device)
    part(got)[tensors_in(KEYS[key], device)] = given
    np.testing.assert_array_equal(got.to("cpu").numpy(), whole)


@pytest.mark.parametrize("dtype", DTYPES.split())
@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("way", ["dense", "columns apart", "inside"])
def test_index_put_of_every_dtype(dtype, accumulate, way, device):
    skip_unserved(device, dtype, "index_put")
    make, part = WAYS[way]
    whole = make().astype(dtype)
    x, key = T(whole, device=device), np.array([3, 0, 3])
    values = numbers((3, 5, 4), dtype)
    part(x).index_put_([T(key, device=device)], T(values, device=device), accumulate=accumulate)
    if accumulate:
        accumulated(part(whole), (key,), values)
    else:
        part(whole)[key] = values
    np.testing.assert_array_equal(x.to("cpu").numpy(), whole)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "float8_e8m0", "float8_e4m3"])
def test_rows_of_other_small_floats(dtype, device):
    skip_unserved(device, dtype, "index_put")
    x = T(np.arange(12.0).reshape(4, 3), device=device, dtype=dtype)
    rows = T([[16.0, 2.0, 4.0]], device=device, dtype=dtype)
    x[T([-1], device=device)] = rows
    x = x.to("cpu").to("float32")
    assert x.tolist()[3] == [16.0, 2.0, 4.0]
    assert x.tolist()[1] == [4.0, 4.0, 4.0] if "e8" in dtype else [3.0, 4.0, 5.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_small_floats_are_rounded_once(dtype, device):
    """1 + 2 ** -9 * 4 in steps of a dtype that has 2 ** -8 at most would stay 1."""
    if tenon.device(device).type in ("ascend", "kunlun"):
        pytest.skip("the vendor's library adds, and it promises no rounding: simulated, of each sum")
    x = tenon.ones([2], dtype=dtype, device=device)
    little = tenon.full(
        [4], 2.0**-11 if dtype == "float16" else 2.0**-8, dtype=dtype, device=device
    )
    y, z = x.clone(), x.clone()
    index = T([1, 1, 1, 1], device=device)
    x.index_add_(index, little)
    y.index_put_([index], little, accumulate=True)
    z.scatter_add_(index, little)
    for each in (x, y, z):
        assert each.tolist() == [1.0, 1.0 + 4 * little[0].item()]


SCATTERS = {
    "scatter_": lambda x, place, value: x.__setitem__(place, value),
    "scatter_add_": lambda x, place, value: x.__setitem__(place, x[place] + value),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("number", [False, True])
def test_scatter_in_place(way, axis, name, number, device):
    make, part = WAYS[way]
    whole = make()
    x = T(whole, device=device)
    extents = [4, 3, 2]
    extents[axis] = 7
    index = RNG.integers(-part(whole).shape[axis], part(whole).shape[axis], extents)
    source = np.array(3.0) if number else numbers(extents)
    for place in np.ndindex(*extents):
        target = list(place)
        target[axis] = index[place]
        SCATTERS[name](part(whole), tuple(target), source if number else source[place])
    given = 3.0 if number else T(source, device=device)
    getattr(part(x), name)(T(index, device=device), given, axis)
    np.testing.assert_array_equal(x.to("cpu").numpy(), whole)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_index_add_in_place(way, axis, device):
    make, part = WAYS[way]
    whole = make()
    x, index = T(whole, device=device), np.array([1, -1, 1, 0])
    shape = list(part(whole).shape)
    shape[axis] = 4
    source = numbers(shape)
    part(x).index_add_(T(index, device=device), T(source, device=device), axis)
    accumulated(np.moveaxis(part(whole), axis, 0), (index,), np.moveaxis(source, axis, 0))
    np.testing.assert_array_equal(x.to("cpu").numpy(), whole)


COMPOSITES = {
    "index_fill_": lambda x, d: x.index_fill_(1, T([4, -5], device=d), 7.0),
    "index_copy_": lambda x, d: x.index_copy_(
        1, T([4, 1], device=d), tenon.ones([6, 2, 4], dtype=x.dtype, device=d)
    ),
    "put_": lambda x, d: x.put_(
        T([0, -1, 33], device=d), T([1.0, 2.0, 3.0], dtype=x.dtype, device=d)
    ),
    "put_ added": lambda x, d: x.put_(
        T([5, 5], device=d), T([1.0, 2.0], dtype=x.dtype, device=d), accumulate=True
    ),
    "masked_scatter_": lambda x, d: x.masked_scatter_(
        x > 0, tenon.arange(120, dtype=x.dtype, device=d)
    ),
    "scatter_nd_add_": lambda x, d: x.scatter_nd_add_(
        T([[5, 1], [5, 1]], device=d), tenon.ones([2, 4], dtype=x.dtype, device=d)
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", COMPOSITES)
def test_composites_write_through(way, name, device):
    make, part = WAYS[way]
    whole = make()
    x = T(whole, device=device)
    want = COMPOSITES[name](part(x).clone(), device)
    given = part(x)
    assert COMPOSITES[name](given, device) is given
    np.testing.assert_array_equal(given.to("cpu").numpy(), want.to("cpu").numpy())
    part(whole)[...] = want.to("cpu").numpy()
    np.testing.assert_array_equal(x.to("cpu").numpy(), whole)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, i: x.__setitem__(i, x[2:5]),
        lambda x, i: x.__setitem__(i, x[5:2:-1]),
        lambda x, i: x.index_add_(i, x[2:5]),
        lambda x, i: x.index_put_([i], x[3:6], accumulate=True),
        lambda x, i: x.scatter_(tenon.stack([i] * 4, -1), x[1:4], 0),
        lambda x, i: x[::2].__setitem__(i[:2] // 2, x[3:5]),
    ],
)
def test_values_in_the_written_memory_are_read_first(write, device):
    x = T(numbers((6, 4)), device=device)
    index = T([4, 3, 0], device=device)
    want = x.clone()
    write_with_copies = x.clone()

    class Copies:
        """Reads that give copies, so that nothing overlaps."""

        def __getitem__(self, key):
            return write_with_copies[key].clone() if key != slice(None, None, 2) else want[key]

        def __getattr__(self, name):
            return getattr(want, name)

        def __setitem__(self, key, value):
            want[key] = value

    write(Copies(), index)
    write(x, index)
    np.testing.assert_array_equal(x.to("cpu").numpy(), want.to("cpu").numpy())


def test_indices_in_the_written_memory_are_read_first(device):
    x = T([3, 2, 1, 0], device=device)
    x[x] = T([10, 11, 12, 13], device=device)
    assert x.tolist() == [13, 12, 11, 10]
    y = T([3, 2, 1, 0], device=device)
    y.index_add_(y[1:3], T([5, 6], device=device))
    assert y.tolist() == [3, 8, 6, 0]


def test_memory_shared_through_numpy():
    memory = np.arange(6.0)
    x, y = tenon.from_numpy(memory), tenon.from_numpy(memory)
    x[T([2, 3, 4, 5])] = y[1:5]
    assert memory.tolist() == [0, 1, 1, 2, 3, 4]


BAD = {
    "index_put": lambda x, i: x.__setitem__(i, 9.0),
    "index_add": lambda x, i: x.index_add_(i, tenon.ones([3, 4], dtype=x.dtype, device=x.device)),
    "scatter": lambda x, i: x.scatter_(tenon.stack([i] * 4, -1), 9.0, 0),
    "scatter_add": lambda x, i: x.scatter_add_(tenon.stack([i] * 4, -1), 9.0, 0),
    "index_fill": lambda x, i: x.index_fill_(0, i, 9.0),
    "put": lambda x, i: x.put_(i * 4, T([9.0, 9.0, 9.0], dtype=x.dtype, device=x.device)),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("bad", [6, -7])
def test_a_wrong_index_changes_nothing(name, bad):
    whole = T(numbers((12, 4)))
    x, before = whole[::2], whole.clone()
    bound = 24 if name == "put" else 6
    message = f"[{name}] expected positions from {-bound} to {bound - 1}, got {bad * bound // 6}"
    if name in ("index_fill", "put"):
        message = message.replace(name, "index_put")
    with pytest.raises(IndexError, match=re.escape(message)):
        BAD[name](x, T([0, 1, bad]))
    assert tenon.equal(whole, before).all().item()


def test_refusals_change_nothing(device):
    x = tenon.zeros([3], device=device).expand([2, 3])
    with pytest.raises(ValueError, match="elements of the output share memory"):
        x[T([0], device=device)] = 1.0
    leaf = tenon.zeros([3], device=device, requires_grad=True)
    for write in (
        lambda: leaf.__setitem__(T([0], device=device), 1.0),
        lambda: leaf.index_fill_(0, T([0], device=device), 1.0),
        lambda: leaf.clip_(1.0),
    ):
        with pytest.raises(
            RuntimeError, match="leaf tensor that requires grad is modified in place"
        ):
            write()
    assert leaf.tolist() == [0.0, 0.0, 0.0]


def test_little(device):
    number = T(5.0, device=device)
    number.scatter_(T(0, device=device), 7.0)
    assert number.item() == 7.0
    none = tenon.zeros([0, 3], device=device)
    none[T([], dtype="int64", device=device)] = 1.0
    assert none.shape == (0, 3)
    empty_rows = tenon.zeros([3, 0], device=device)
    empty_rows[T([1, 1], device=device)] = tenon.ones([2, 0], device=device)
    if tenon.device(device).type != "kunlun":  # XDNN's functions check no position
        with pytest.raises(IndexError):
            none[T([0], device=device)] = 1.0


@pytest.mark.parametrize("inner", [1, 3, 200])
def test_threads_change_no_bit(inner):
    count, rows = 40_000, 300
    x = T(RNG.normal(size=(rows, inner)).astype("float32"))
    index = T(RNG.integers(-rows, rows, count))
    values = T(RNG.normal(size=(count, inner)).astype("float32"))
    spread = index.unsqueeze(-1).expand([count, inner])
    found = []
    threads = tenon.get_num_threads()
    try:
        for each in (1, 2, 5):
            tenon.set_num_threads(each)
            a, b, c = x.clone(), x.clone(), x.clone()
            a[index] = values
            b.index_add_(index, values)
            c.T.scatter_add_(spread.T, values.T, -1)
            found.append([t.numpy() for t in (a, b, c)])
    finally:
        tenon.set_num_threads(threads)
    want = x.numpy().copy()
    want[index.numpy()] = values.numpy()
    np.testing.assert_array_equal(found[0][0], want)  # the last of equal indices
    np.testing.assert_array_equal(found[0][1], found[0][2])
    for other in found[1:]:
        for got, same in zip(other, found[0], strict=True):
            np.testing.assert_array_equal(got, same)


def test_writes_take_no_memory():
    x = tenon.zeros([1000, 1000])
    index = T([5, 7])
    for write in (
        lambda: x.__setitem__(index, 1.0),
        lambda: x[:, ::2].__setitem__(index, 1.0),
        lambda: x.index_add_(index, tenon.ones([2, 1000])),
        lambda: x.scatter_add_(tenon.zeros([2, 1000], dtype="int64"), 1.0, 0),
        lambda: x.index_fill_(0, index, 2.0),
        lambda: x.put_(index, T([1.0, 2.0])),
    ):
        tenon.memory.reset_peak()
        before = tenon.memory.stats()["current"]
        write()
        assert tenon.memory.stats()["peak"] - before < 100_000


# -- gradients ---------------------------------------------------------------------------------------


FORMS = {
    "index_put": lambda x, v, i: x.index_put_([i], v),
    "accumulate": lambda x, v, i: x.index_put_([i], v, accumulate=True),
    "index_add": lambda x, v, i: x.index_add_(i, v),
    "scatter": lambda x, v, i: x.scatter_(tenon.stack([i] * 2, -1), v, 0),
    "scatter_add": lambda x, v, i: x.scatter_add_(tenon.stack([i] * 2, -1), v, 0),
    "index_copy": lambda x, v, i: x.index_copy_(0, i, v),
    "index_fill": lambda x, v, i: x.index_fill_(0, i, 2.0),
    "put": lambda x, v, i: x.put_(i, v[:, 0]),
    "masked_scatter": lambda x, v, i: x.masked_scatter_(T([[True, False]]), v),
    "scatter_nd_add": lambda x, v, i: x.scatter_nd_add_(i.unsqueeze(-1), v),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("view", [False, True])
def test_gradients_twice(form, view):
    """Of a result that is written, and of a view of one."""
    index = T([3, 0, 2] if form in ("index_put", "scatter", "index_copy") else [3, 0, 3])
    x = T(RNG.normal(size=(4, 4 if view else 2)), requires_grad=True)
    v = T(RNG.normal(size=(3, 2)), requires_grad=True)

    def function(x, v):
        y = x * x
        FORMS[form](y[:, ::2] if view else y, v * v, index)
        return y * y + (v * v).sum()

    def gradients(*inputs):
        with tenon.enable_grad():
            inputs = [
                each if each.requires_grad else each.detach().requires_grad_() for each in inputs
            ]
            return tenon.grad(function(*inputs).sum(), inputs, create_graph=True)

    assert tenon.autograd.gradcheck(function, (x, v))
    assert tenon.autograd.gradcheck(gradients, (x, v))


def test_saved_tensors_that_are_written_are_noticed():
    x = T([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1.0
    z = y * y
    y[T([1])] = 5.0
    with pytest.raises(RuntimeError, match="was modified in place"):
        z.sum().backward()


# -- programs ----------------------------------------------------------------------------------------


def test_programs_write_in_place():
    def function(x, rows, values):
        y = x * 2.0
        y[rows] = values
        y.index_add_(rows, values)
        y.index_fill_(0, rows[:1], 1.0)
        y.clip_(-1.0, 1.0)
        return y + 1.0

    arguments = T(numbers((6, 3))), T([4, 0, 4]), T(numbers((3, 3)))
    program = tenon.export(function, arguments)
    np.testing.assert_array_equal(program(*arguments).numpy(), function(*arguments).numpy())
    compiled = tenon.compile(function)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(*arguments).numpy(), function(*arguments).numpy())


def test_programs_write_into_their_arguments():
    def function(x, rows, values):
        x[rows] = values
        return x.sum()

    x = T(numbers((6, 3)))
    y, rows, values = x.clone(), T([4, 0]), T(numbers((2, 3)))
    compiled = tenon.compile(function)
    for _ in range(3):
        assert compiled(x, rows, values).item() == function(y, rows, values).item()
        np.testing.assert_array_equal(x.numpy(), y.numpy())
        values = values + 1.0
