# SPDX-License-Identifier: Apache-2.0
"""Making tensors, asking them things, converting and copying them."""

import array as c_array
import copy
import gc
import inspect
import pickle

import numpy as np
import pytest
import tenon

NUMPY_DTYPES = [
    "bool",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, tenon.int64, ()),
        (True, tenon.bool, ()),
        (1.5, tenon.float32, ()),
        (1 + 2j, tenon.complex64, ()),
        ([], tenon.float32, (0,)),
        ([[], []], tenon.float32, (2, 0)),
        ([True, 2], tenon.int64, (2,)),
        ([1, 2.5], tenon.float32, (2,)),
        (((1, 2), (3, 4), (5, 6)), tenon.int64, (3, 2)),
        (range(4), tenon.int64, (4,)),
        ([np.float32(1), 2], tenon.float32, (2,)),
        (np.int8(3), tenon.int8, ()),
    ],
)
def test_from_python_data(data, dtype, shape):
    x = tenon.tensor(data)
    assert (x.dtype, x.shape, x.ndim) == (dtype, shape, len(shape))
    assert x.size == x.numel() == int(np.prod(shape))


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ([1, 2.5, 3], tenon.float32),
        ([1.5, 2, 3j, 4.0], tenon.complex64),
        ([True, 2, False], tenon.int64),
        ([0, 2**29, 2**30, -(2**30), 2**63 - 1, -(2**63)], tenon.int64),
        ([[1, 2], [3, 4.5]], tenon.float32),
        ([1.5, tenon.tensor(2.5), np.float64(3.5)], tenon.float64),
        ([np.float32(1.5), 2.5, 3], tenon.float32),
        ([np.float16(1.5), 2], tenon.float16),
        ([np.int8(1), 300], tenon.int64),
        ([np.int8(1), np.int16(300)], tenon.int16),
        ([np.int8(1), 2.5], tenon.float32),
        ([np.float64(1), 2j], tenon.complex128),
        ([np.bool_(True), False], tenon.bool),
    ],
)
def test_numbers_of_different_kinds_in_a_list(data, dtype):
    x = tenon.tensor(data)
    assert x.dtype == dtype
    assert x.tolist() == [x.item() if isinstance(x, tenon.Tensor) else x for x in data]


@pytest.mark.parametrize("name", NUMPY_DTYPES)
def test_arrays_keep_their_dtype_and_values(name):
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(name)
    x = tenon.tensor(array)
    assert x.dtype == tenon.dtype(name) and x.dtype == array.dtype
    assert x.tolist() == array.tolist()
    array[0, 0] = 1
    assert x.tolist()[0][0] == 0  # a copy


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.arange(6.0).reshape(2, 3, order="F"),
        np.arange(12)[::-2],
        np.arange(3000.0),  # more than is copied as it is read
        np.float32(2.5),
        np.array(7),
        np.zeros((0, 3), np.int8),
        np.frombuffer(b"abcd", np.uint8),
        c_array.array("i", [1, 2]),
        b"ab",
    ],
    ids=lambda array: f"{type(array).__name__}-{np.shape(array)}",
)
def test_arrays_are_copied(array):
    x = tenon.tensor(array)
    expected = np.frombuffer(array, np.uint8) if isinstance(array, bytes) else np.asarray(array)
    assert x.dtype == expected.dtype and x.shape == expected.shape
    assert x.tolist() == expected.tolist()
    x += 1  # also where the array is read-only
    assert expected.tolist() != x.tolist() or x.size == 0


def test_arrays_of_the_other_byte_order_are_refused():
    with pytest.raises(ValueError, match="in this machine's byte order, got the element format >f"):
        tenon.tensor(np.ones(3, ">f4"))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3", "float8_e5m2"])
def test_small_floats_hold_small_numbers_exactly(name):
    values = [0.0, 1.0, -2.5, 0.25, 16.0]
    x = tenon.tensor(values, dtype=name)
    assert x.dtype.name == name
    assert x.tolist() == values


def test_special_values_survive_small_floats():
    x = tenon.tensor([float("inf"), float("-inf"), float("nan")], dtype=tenon.bfloat16)
    assert str(x.tolist()) == "[inf, -inf, nan]"
    smallest = tenon.tensor(2.0**-24, dtype=tenon.float16)
    assert smallest.item() == 2.0**-24


@pytest.mark.parametrize(
    ("data", "keywords", "error", "text"),
    [
        ([[1], [2, 3]], {}, ValueError, "nested lists of equal length"),
        ([1, [2]], {}, ValueError, "equal"),
        (["a"], {}, TypeError, "expected numbers in nested lists, got str"),
        (
            object(),
            {},
            TypeError,
            "expected numbers, nested lists, an array or a Tensor, got object",
        ),
        ([300], {"dtype": "int8"}, OverflowError, "300 does not fit int8"),
        ([-1], {"dtype": "uint64"}, OverflowError, "-1 does not fit uint64"),
        ([1, 2**63], {}, OverflowError, "9223372036854775808 does not fit int64"),
        ([1.0, "a"], {}, TypeError, "expected numbers in nested lists, got str"),
        ([[1.0], 2.0], {}, ValueError, "equal"),
        ([1], {"dtype": "float31"}, ValueError, "expected the name of a dtype"),
        ([1], {"dtype": 3}, TypeError, "expected a dtype"),
        ([1], {"device": 3}, TypeError, "expected a device"),
        ([1], {"device": "nowhere"}, LookupError, "nowhere"),
    ],
)
def test_wrong_data_is_explained(data, keywords, error, text):
    with pytest.raises(error, match=text):
        tenon.tensor(data, **keywords)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("change", ["grow", "shrink", "replace"])
def test_lists_that_change_while_they_are_read(change, depth):
    """A number's class may bring a conversion of its own, which may do anything."""

    class Number(int):
        def __init__(self, value):
            self.value = [float(value)] * 1000

        def __float__(self):
            if change == "grow":
                inner.extend([2.0] * 1_000_000)
            elif change == "shrink":
                inner.clear()
            else:
                inner[1] = 7.0
            gc.collect()
            return self.value[-1]

    inner = [1.0]
    inner.append(Number(3))
    inner.append(5.0)
    data = inner if depth == 1 else [inner, [1.0, 2.0, 3.0]]
    if change == "replace":
        assert tenon.tensor(data).reshape((-1, 3)).tolist()[0] == [1, 3, 5]
    else:
        with pytest.raises(RuntimeError, match="a list changed while it was read"):
            tenon.tensor(data)


def test_lists_of_empty_tensors():
    for shape in [(0,), (0, 3), (3, 0), (2, 0, 3), (4, 2, 0)]:
        want = np.zeros(shape).tolist()
        x = tenon.zeros(shape)
        assert x.tolist() == want
        assert (
            x[::-1].tolist() == want and x[..., ::2].tolist() == np.zeros(shape)[..., ::2].tolist()
        )


def test_the_function_reads_names_and_explains_what_it_takes():
    assert str(inspect.signature(tenon.tensor)) == (
        "(data, dtype=None, device=None, requires_grad=False)"
    )
    assert tenon.tensor(data=[1, 2], dtype=tenon.int8).dtype == tenon.int8
    assert tenon.tensor([1.0], "float64", "cpu", True).requires_grad
    x = tenon.tensor([1.0])
    assert tenon.tensor(x).data_ptr() != x.data_ptr()
    for wrong in ((), ([1], None, None, False, 2)):
        with pytest.raises(TypeError, match="tensor"):
            tenon.tensor(*wrong)
    with pytest.raises(TypeError, match="tensor"):
        tenon.tensor([1], kind=1)


def test_shapes_are_those_of_the_tensor_asked():
    shapes = [(i, j) for i in range(40) for j in range(5)]
    shapes += [(), (0,), (1 << 40,), (1, 2, 3, 4, 5), (1, 2, 3, 4, 5, 6), (1,) * 32]
    for shape in shapes * 2:
        x = tenon.empty(shape, device="meta")
        assert x.shape == shape
        assert type(x.shape) is tuple
    x = tenon.zeros((2, 3))
    assert (x.shape, x.strides) == ((2, 3), (3, 1))
    x.data = tenon.zeros((3, 2)).T[:1]
    assert (x.shape, x.strides) == ((1, 3), (1, 2))
    assert tenon.zeros((3, 1)).shape == (3, 1)  # the strides of the first, as a shape


def test_lists_of_arrays_and_tensors():
    assert tenon.tensor([np.ones(2), np.zeros(2)]).tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert tenon.tensor([tenon.tensor(1), tenon.tensor(2)]).tolist() == [1, 2]


def test_attributes():
    x = tenon.zeros((2, 3), dtype=tenon.float64)
    assert (x.strides, x.itemsize, x.nbytes, len(x)) == ((3, 1), 8, 48, 2)
    assert x.is_contiguous() and not x.T.is_contiguous()
    assert x.T.shape == (3, 2) and x.mT.shape == (3, 2)
    assert x.device == tenon.device("cpu") and x.device == "cpu" and str(x.device) == "cpu:0"
    with pytest.raises(TypeError, match="0-d tensor has no length"):
        len(tenon.tensor(1))


def test_numbers():
    assert tenon.tensor([[2.5]]).item() == 2.5
    assert int(tenon.tensor(7)) == 7 and float(tenon.tensor(7)) == 7.0
    assert complex(tenon.tensor(1 + 2j)) == 1 + 2j
    assert [10, 20, 30][tenon.tensor(1)] == 20
    assert bool(tenon.tensor(0.0)) is False
    assert f"{tenon.tensor(3.14159):.2f}" == "3.14"
    with pytest.raises(ValueError, match=r"ambiguous; use .any\(\) or .all\(\)"):
        bool(tenon.tensor([1, 2]))
    with pytest.raises(ValueError, match="expected a tensor of one element, got 2"):
        tenon.tensor([1, 2]).item()
    with pytest.raises(TypeError, match="expected an integer tensor"):
        [1][tenon.tensor(0.0)]


def test_operators_of_python():
    x, y = tenon.tensor([7.0, -8.0]), tenon.tensor([2.0, 3.0])
    a, b = np.array([7.0, -8.0], np.float32), np.array([2.0, 3.0], np.float32)
    for form in [
        "x + y",
        "x - y",
        "x * y",
        "x / y",
        "x // y",
        "x % y",
        "y ** 2",
        "2 - x",
        "1 / y",
        "2 ** y",
        "-x",
        "+x",
        "abs(x)",
        "x < y",
        "x <= 7",
        "x == y",
        "x != 7.0",
        "7 >= x",
        "x @ y",
        "3 % y",
        "9 // y",
    ]:
        got = eval(form, {"x": x, "y": y})
        expected = eval(form, {"x": a, "y": b})
        np.testing.assert_allclose(got.numpy(), expected, err_msg=form)
        assert got.dtype == np.asarray(expected).dtype, form
    i, j = tenon.tensor([6, 3]), tenon.tensor([3, 1])
    assert (i & j).tolist() == [2, 1] and (i | j).tolist() == [7, 3] and (i ^ j).tolist() == [5, 2]
    assert (
        (i << j).tolist() == [48, 6] and (i >> j).tolist() == [0, 1] and (~i).tolist() == [-7, -4]
    )
    assert [t.tolist() for t in divmod(i, 4)] == [[1, 0], [2, 3]]


def test_in_place_operators_keep_the_object():
    x = tenon.tensor([1.0, 2.0])
    same = x
    x += 1
    x *= tenon.tensor([2.0, 3.0])
    x -= 1.0
    x /= 2
    assert x is same and same.tolist() == [1.5, 4.0]
    with pytest.raises((TypeError, ValueError)):
        i = tenon.tensor([1])
        i += 1.5


def test_foreign_operands():
    x = tenon.tensor([1.0, 2.0])
    assert (np.float32(1) + x).tolist() == [2.0, 3.0] and (x + np.int64(1)).tolist() == [2.0, 3.0]
    with pytest.raises(TypeError, match=r"got numpy.ndarray; convert it with tenon.tensor"):
        x + np.ones(2)
    with pytest.raises(TypeError, match="tenon.tensor"):
        np.ones(2) + x
    with pytest.raises(TypeError, match="got list"):
        x + [1.0, 2.0]
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "a"
    assert (x == None) is False and (x != "a") is True  # noqa: E711
    with pytest.raises(OverflowError, match="does not fit 64 bits"):
        x + 2**70


def test_to():
    x = tenon.tensor([1.7, -1.7])
    assert x.to(tenon.int64).tolist() == [1, -1] and x.to("int32").dtype == tenon.int32
    assert x.to(tenon.float32) is x and x.to("cpu") is x and x.cpu() is x
    copied = x.to(tenon.float32, copy=True)
    assert copied is not x and copied.data_ptr() != x.data_ptr()
    assert x.to(tenon.tensor(1, dtype="float64")).dtype == tenon.float64
    assert x.to("cpu", tenon.float16).dtype == tenon.float16
    assert x.to(dtype=np.float64).dtype == tenon.float64
    with pytest.raises(
        TypeError, match=r"to\(\): expected a dtype, a device or a Tensor, got list"
    ):
        x.to([1])


def test_dtypes():
    assert repr(tenon.float32) == "tenon.float32" and str(tenon.float32) == "float32"
    assert tenon.dtype("int8") is tenon.int8 and tenon.dtype(np.float64) is tenon.float64
    assert tenon.dtype(np.dtype("uint16")) is tenon.uint16 and tenon.dtype(float) is tenon.float32
    assert tenon.float32 == "float32" and tenon.float32 != "float64" and tenon.float32 != 3
    assert {tenon.int8: 1}[tenon.dtype("int8")] == 1
    assert tenon.int32.is_signed and not tenon.uint32.is_signed and tenon.bfloat16.is_floating_point
    assert pickle.loads(pickle.dumps(tenon.bfloat16)) is tenon.bfloat16
    assert copy.deepcopy(tenon.int64) is tenon.int64


def test_devices():
    cpu = tenon.device("cpu")
    assert (
        cpu == tenon.device("cpu", 0) == tenon.device(cpu) == "cpu:0"
        and cpu.kind == cpu.type == "cpu"
    )
    assert repr(cpu) == "tenon.device('cpu:0')" and hash(cpu) == hash(tenon.device("cpu:0"))
    assert pickle.loads(pickle.dumps(cpu)) == cpu and cpu in tenon.devices()
    with pytest.raises(LookupError, match="martian"):
        tenon.device("martian:3")


def test_meta_tensors_have_no_values():
    x = tenon.empty((2, 3), device="meta")
    assert (x + x).shape == (2, 3) and (x + x).device == "meta"
    for out in (tenon.empty((2, 3), device="meta"), tenon.empty((3, 2), device="meta").T):
        assert tenon.add(x, x, out=out) is out
    with pytest.raises(ValueError, match="meta tensor"):
        x.tolist()
    with pytest.raises(TypeError, match="meta"):
        x.numpy()


def test_iteration_and_membership():
    x = tenon.tensor([[1, 2], [3, 4]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert 3 in x and 5 not in x and "a" not in x
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(tenon.tensor(1))


def test_copy_fill_and_zero():
    x = tenon.zeros((2, 2))
    assert x.copy_(tenon.tensor([1, 2])) is x and x.tolist() == [[1, 2], [1, 2]]
    x.fill_(3)
    assert x.tolist() == [[3, 3], [3, 3]]
    x.copy_(np.array([[5.0], [6.0]]))
    assert x.tolist() == [[5, 5], [6, 6]]
    assert x.zero_().tolist() == [[0, 0], [0, 0]]
    with pytest.raises(TypeError, match=r"fill_\(\): expected a number or a 0-d Tensor, got list"):
        x.fill_([1])
    with pytest.raises(ValueError):
        x.copy_(tenon.zeros(3))


def test_writes_bump_the_version_of_all_views():
    x = tenon.zeros(4)
    view, before = x[1:], x._version
    view += 1
    assert x._version > before and x.tolist() == [0, 1, 1, 1]


def test_data_replaces_the_memory_but_not_the_object():
    x = tenon.tensor([1.0, 2.0])
    handle = x.data
    assert handle.data_ptr() == x.data_ptr()
    x.data = tenon.tensor([[3]])
    assert x.tolist() == [[3]] and x.dtype == tenon.int64 and handle.tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="data: expected a Tensor, got list"):
        x.data = [1]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", ["float32", "bfloat16", "bool", "complex64"])
def test_pickle(protocol, name):
    x = tenon.tensor([[0, 1], [2, 3]]).to(name).T
    y = pickle.loads(pickle.dumps(x, protocol))
    assert y.dtype == x.dtype and y.tolist() == x.tolist()


def test_deepcopy_keeps_class_and_attributes():
    class Named(tenon.Tensor):
        pass

    x = Named(tenon.tensor([1.0, 2.0]))
    x.label = ["a"]
    x.requires_grad = True
    y = copy.deepcopy(x)
    assert type(y) is Named and y.label == ["a"] and y.label is not x.label
    assert y.requires_grad and y.tolist() == x.tolist() and y.data_ptr() != x.data_ptr()


def test_subclasses():
    class Mine(tenon.Tensor):
        def __new__(cls, data, note):
            self = super().__new__(cls, data)
            self.note = note
            return self

        def __init__(self, data, note):
            pass

        def doubled(self):
            return self + self

    base = tenon.tensor([1.0, 2.0])
    x = Mine(base, "n")
    assert isinstance(x, tenon.Tensor) and x.note == "n" and x.data_ptr() == base.data_ptr()
    assert type(x.doubled()) is tenon.Tensor and x.sum().item() == 3.0
    assert tenon.add(x, base).tolist() == [2.0, 4.0]


def test_tensor_constructor():
    assert tenon.Tensor([1, 2]).dtype == tenon.int64 and tenon.Tensor().shape == (0,)
    assert tenon.Tensor([1.0], requires_grad=True).requires_grad
    with pytest.raises(TypeError):
        tenon.Tensor([1], [2])
    with pytest.raises(TypeError):
        tenon.Tensor.x = 1  # all users share the type


def test_array_namespace():
    assert tenon.tensor(1).__array_namespace__() is tenon.array_api


def test_asarray_shares_where_it_can():
    x = tenon.tensor([1.0])
    assert tenon.asarray(x) is x and tenon.asarray(x, dtype="float64").dtype == tenon.float64
    array = np.arange(3.0)
    assert tenon.asarray(array).data_ptr() == array.ctypes.data
    assert tenon.asarray(array, copy=True).data_ptr() != array.ctypes.data
    assert tenon.asarray([1, 2]).tolist() == [1, 2]


def test_lists_of_tensors_promote_like_operators():
    """NumPy, which joins them, makes float64 of int64 and float32."""
    whole, real = tenon.tensor([1]), tenon.tensor([2.0])
    for parts in ([whole, real], [[whole, real]], [whole, whole], [real, real.to("float64")]):
        flat = parts[0] if isinstance(parts[0], list) else parts
        assert tenon.tensor(parts).dtype == (flat[0] + flat[1]).dtype
    assert tenon.tensor([whole, real]).tolist() == [[1.0], [2.0]]
    assert tenon.tensor([whole, real], dtype="float64").dtype == tenon.float64


def test_copies_take_non_blocking_and_stay_in_order():
    x = tenon.ones(3)
    assert x.to("cpu", non_blocking=True) is x
    assert x.to("float64", non_blocking=True).dtype == tenon.float64
    layer = tenon.nn.Linear(2, 2).to("cpu", dtype=tenon.float64, non_blocking=True)
    assert layer.weight.dtype == tenon.float64


def test_what_has_a_history_is_copied_without_it():
    y = tenon.ones(3, requires_grad=True) * 2.0
    with pytest.raises(
        RuntimeError, match=r"requires grad and has a history .* use .detach\(\) first"
    ):
        copy.deepcopy(y)
    assert copy.deepcopy(y.detach()).tolist() == [2.0] * 3
