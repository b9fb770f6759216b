# SPDX-License-Identifier: Apache-2.0
"""Transformations of functions: against finite differences, against each other, and against loops."""

import copy

import numpy as np
import pytest
import tenon
from tenon import func, nn

T = tenon.tensor
rng = np.random.default_rng(0)
STEP = 1e-5


def random(*shape):
    return T(rng.standard_normal(shape))


def vector(x):
    """Three numbers that depend on all elements of a vector, nonlinearly."""
    return tenon.stack([(x**3).sum(), (x.sin() * x[0]).sum(), tenon.exp(x).prod()])


def number(x):
    return (x**3).sum() + x[0] * x[1] * x[2]


def differences(function, x):
    """The Jacobian by central differences."""
    columns = []
    for i in range(x.size):
        step = np.zeros(x.size)
        step[i] = STEP
        step = T(step).reshape(x.shape)
        columns.append(((function(x + step) - function(x - step)) / (2 * STEP)).detach().numpy())
    return np.stack(columns, -1).reshape((*columns[0].shape, *x.shape))


def close(got, want, tolerance=1e-6):
    want = want.detach().numpy() if isinstance(want, tenon.Tensor) else np.asarray(want)
    assert tuple(got.shape) == want.shape
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=tolerance, atol=tolerance)


# -- derivatives -----------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [func.jacrev, func.jacfwd])
def test_jacobians(transform):
    x = random(4)
    close(transform(vector)(x), differences(vector, x))
    close(transform(transform(vector))(x), differences(transform(vector), x))
    m = random(2, 3)
    close(transform(lambda m: m @ m.T)(m), differences(lambda m: m @ m.T, m))
    assert transform(lambda x: T(2.0))(x).tolist() == [0.0] * 4
    assert transform(lambda x: x[:0])(x).shape == (0, 4)


def test_hessians():
    x, v = random(4), random(4)
    hessian = func.hessian(number)(x)
    close(hessian, differences(func.grad(number), x))
    close(func.jacfwd(func.jacrev(number))(x), hessian)
    close(tenon.autograd.hessian(number, x), hessian)
    value, (product,) = func.hvp(number, (x,), (v,))
    close(product, hessian @ v)
    assert value.item() == number(x).item()
    close(func.vhp(number, (x,), (v,))[1][0], v @ hessian)


def test_products_with_jacobians():
    x, y, u, v = random(3, 4), random(4), random(3), random(4)
    result, pull = func.vjp(lambda a, b: a @ b, x, y)
    of_x, of_y = pull(u)
    close(result, x @ y)
    close(of_x, tenon.outer(u, y))
    close(of_y, u @ x)
    result, tangent = func.jvp(lambda a, b: a @ b, (x, y), (x, v))
    close(tangent, x @ y + x @ v)
    result, pull, aux = func.vjp(lambda a: (a * 2, {"twice": a * 4}), y, has_aux=True)
    close(aux["twice"], y * 4)
    close(func.jvp(lambda a: (a * 2, a), (y,), (v,), has_aux=True)[1], v * 2)


def test_complex_products():
    z, w = T([1 + 2j, 3 - 1j]), T([0.5j, 1 + 1j])
    close(func.jvp(lambda z: z * z, (z,), (w,))[1], 2 * z * w)
    with pytest.raises(TypeError, match="jacrev: expected real tensors, got complex ones"):
        func.jacrev(lambda z: z * z)(z)


def test_gradients_of_nests():
    tree = {"w": random(3), "layers": [random(2), (random(2), random(1))]}

    def loss(tree, scale):
        w, (a, (b, c)) = tree["w"], tree["layers"]
        return scale * ((w**2).sum() + (a * b).sum() * c.sum())

    gradient, value = func.grad_and_value(loss)(tree, 2.0)
    assert func.value_and_grad(loss)(tree, 2.0)[0].tolist() == value.tolist()
    close(gradient["w"], tree["w"] * 4)
    a, (b, c) = tree["layers"]
    close(gradient["layers"][1][0], 2 * a * c)
    assert isinstance(gradient["layers"][1], tuple) and value.item() == loss(tree, 2.0).item()
    both = func.grad(lambda x, y: (x * y).sum(), argnums=(0, -1))(a, b)
    close(both[0], b)
    close(both[1], a)
    gradient, aux = func.grad(lambda x: (x.sum(), x * 2), has_aux=True)(a)
    close(aux, a * 2)
    jacobian = func.jacrev(lambda p: {"out": p["x"] * 2})({"x": a})
    close(jacobian["out"]["x"], np.eye(2) * 2)
    close(tenon.autograd.jacobian(lambda x, y: x * y, (a, b))[1], np.diag(a.numpy()))


def test_results_have_a_history():
    x = T([1.0, 2.0], requires_grad=True)
    w = T([3.0], requires_grad=True)
    gradient = func.grad(lambda x: (x**3).sum() * w.sum())(x)
    (gradient**2).sum().backward()
    assert w.grad.item() == pytest.approx(
        2 * 3 * (9 + 144)
    )  # also of what the function closes over
    close(x.grad, np.array([2 * 9 * 18.0, 2 * 36 * 36.0]))
    with tenon.no_grad():
        inside = func.grad(lambda x: (x**3).sum())(x)
        value, pull = func.vjp(lambda x: x**2, x)
        pushed = func.jvp(lambda x: x**2, (x,), (x,))[1]
    for each in (inside, value, pull(T([1.0, 1.0]))[0], pushed):
        assert not each.requires_grad
    close(inside, np.array([3.0, 12.0], dtype="float32"))


def test_derivatives_that_do_not_depend():
    x = random(2)
    assert func.grad(lambda x: T(1.0))(x).tolist() == [0.0, 0.0]
    assert func.jvp(lambda x: T([1.0]), (x,), (x,))[1].tolist() == [0.0]


# -- batches ---------------------------------------------------------------------------------------


def test_batches_of_arguments_and_results():
    x, w = random(5, 3, 4), random(4, 2)
    close(func.vmap(lambda x: x @ w)(x), x @ w)
    close(func.vmap(lambda x, w: x @ w, in_dims=(1, None), out_dims=1)(x, w), x @ w)
    results = func.vmap(
        lambda p, k: {"sum": p["a"].sum() + k, "same": T(1.0)}, in_dims=({"a": 0}, None)
    )({"a": x}, 2.0)
    close(results["sum"], x.sum([1, 2]) + 2)
    assert results["same"].tolist() == [1.0] * 5
    assert func.vmap(lambda x, *, k: x * k)(x, k=2).shape == x.shape
    for chunk_size in (1, 2, 5, 9):
        close(func.vmap(lambda x: x.sum(0), chunk_size=chunk_size, out_dims=1)(x), x.sum(1).T)


def test_nested_batches():
    p, q = random(3, 2), random(4, 2)
    distances = func.vmap(func.vmap(lambda p, q: ((p - q) ** 2).sum(), (None, 0)), (0, None))(p, q)
    close(distances, ((p.unsqueeze(1) - q.unsqueeze(0)) ** 2).sum(-1))
    x = random(2, 3, 4)
    close(
        func.vmap(func.vmap(number), in_dims=1, out_dims=1)(x),
        np.array([[number(r).item() for r in m] for m in x]),
    )


@pytest.mark.parametrize("transform", [func.jacrev, func.jacfwd, func.hessian])
def test_derivatives_of_every_sample(transform):
    x = random(5, 4)
    function = number if transform is func.hessian else vector
    want = tenon.stack([transform(function)(row) for row in x])
    close(func.vmap(transform(function))(x), want)
    close(
        func.grad(lambda x: func.vmap(number)(x).sum())(x),
        tenon.stack([func.grad(number)(r) for r in x]),
    )


def test_gradients_of_samples_of_a_network():
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8, 6),
        nn.LayerNorm(6),
        nn.Linear(6, 3),
    )
    parameters = {name: each.detach() for name, each in model.named_parameters()}
    images, targets = tenon.randn(4, 1, 6, 6), T([0, 2, 1, 1])

    def loss(parameters, image, target):
        out = func.functional_call(model, parameters, (image.unsqueeze(0),))
        return nn.functional.cross_entropy(out, target.unsqueeze(0))

    got = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(parameters, images, targets)
    for i in range(4):
        model.zero_grad()
        nn.functional.cross_entropy(model(images[i : i + 1]), targets[i : i + 1]).backward()
        for name, parameter in model.named_parameters():
            close(got[name][i], parameter.grad, 1e-4)


def test_indices_and_writes():
    table, rows = random(6, 2), T([[0, 5], [3, 3], [1, 2]])
    close(func.vmap(lambda i: table[i])(rows), table[rows])
    close(func.vmap(lambda t, i: t[i], in_dims=(None, 0))(table, rows), table[rows])
    x = random(3, 6)
    picked = tenon.stack([x[k][rows[k]] for k in range(3)])
    close(func.vmap(lambda x, i: x[i])(x, rows), picked)
    close(func.vmap(lambda x: x[1:, None][..., 0])(x), x[:, 1:])

    def write(x):
        y = x.clone()
        y[0] = 7.0
        y[1:3] *= 2
        y += 1
        return y.add_(x)

    close(func.vmap(write)(x), tenon.stack([write(row) for row in x]))


def test_operators_and_comparisons():
    x, y = random(3, 4), random(3, 4)

    def every(x, y):
        return (
            (2 - x * y) / (1 + abs(x))
            + -(x**2)
            + (x > y)
            + (x != 0.5)
            + x % 2
            + x // 2
            + ~(x < 0)
            + x.T
        )

    close(func.vmap(every)(x, y), tenon.stack([every(x[i], y[i]) for i in range(3)]))
    close(func.vmap(lambda x: x.to("float32").double().detach().cpu())(x), x.to("float32").double())


def test_refusals():
    x = random(3, 2)
    for function, text in (
        (lambda x: x if x.sum() > 0 else -x, "got the truth: there is one for each sample"),
        (lambda x: x * x.sum().item(), "got item()"),
        (lambda x: x * float(x[0]), "got float()"),
        (lambda x: x[x > 0], "use tenon.where"),
        (lambda x: x.sum().backward(), "expected no backward"),
    ):
        with pytest.raises((RuntimeError, NotImplementedError)) as error:
            func.vmap(function)(x)
        assert text in str(error.value)
    shared = random(2)
    with pytest.raises(
        RuntimeError, match="would write a batch into one tensor that all samples share"
    ):
        func.vmap(lambda x: shared.add_(x))(x)
    with pytest.raises(ValueError, match="expected one size of the batch in all inputs, got"):
        func.vmap(lambda x, y: x)(x, random(4))
    with pytest.raises(ValueError, match="expected an input with a batch"):
        func.vmap(lambda x: x, in_dims=None)(x)
    with pytest.raises(TypeError, match="expected a tensor where in_dims is 0, got float"):
        func.vmap(lambda x, y: x)(x, 1.0)
    with pytest.raises(ValueError, match="expected in_dims below the 2 axes of input 0, got 2"):
        func.vmap(lambda x: x, in_dims=2)(x)
    with pytest.raises(ValueError, match=r"vmap: in_dims: expected a nest like"):
        func.vmap(lambda x: x, in_dims=(0, 0))(x)
    with pytest.raises(TypeError, match="expected tensors from the function, got int"):
        func.vmap(lambda x: 1)(x)
    with pytest.raises(ValueError, match="chunk_size of at least 1, got 0"):
        func.vmap(lambda x: x, chunk_size=0)(x)
    with pytest.raises(ValueError, match=r"one tensor of one element, got shapes \[\(2,\)\]"):
        func.grad(lambda x: x)(x[0])
    with pytest.raises(
        TypeError, match="floating or complex tensors to differentiate by, got int64"
    ):
        func.grad(lambda x: x.sum())(T([1]))
    with pytest.raises(ValueError, match="expected argnums below 1, got 1"):
        func.grad(lambda x: x.sum(), argnums=1)(x)
    with pytest.raises(
        ValueError, match=r"vectors of the shapes of the arguments, got \(3,\) for \(2,\)"
    ):
        func.jvp(lambda x: x, (x[0],), (random(3),))
    with pytest.raises(TypeError, match="jvp: expected primals and tangents as tuples"):
        func.jvp(lambda x: x, x, x)
    with pytest.raises(TypeError, match="with has_aux, expected a pair"):
        func.grad(lambda x: x.sum(), has_aux=True)(x)


def test_a_failing_function_leaves_no_batch_behind():
    with pytest.raises(ZeroDivisionError):
        func.vmap(lambda x: 1 / 0)(random(3))
    assert func.grad(number)(random(4)).shape == (4,)


def test_products_by_letters():
    x, w = random(3, 2, 4), random(4, 5)
    close(func.vmap(lambda x: tenon.einsum("ij,jk->ki", [x, w]))(x), (x @ w).mT)
    close(func.vmap(lambda x: tenon.einsum("ij,ij", [x, x]))(x), (x * x).sum([1, 2]))


@pytest.mark.parametrize("equation", ["ij->ji", "ii->i", "ij->", "ij->i"])
def test_products_by_letters_of_one_tensor(equation):
    x = random(3, 4, 4)
    want = np.stack([np.einsum(equation, each) for each in x.numpy()])
    close(func.vmap(lambda t: tenon.einsum(equation, t))(x), want)
    close(func.vmap(lambda t: tenon.einsum(equation, [t]))(x), want)


def test_inverses_by_factors():
    x = random(3, 4, 4)
    factors = tenon.linalg.cholesky(x @ x.mT + 4 * tenon.eye(4))
    close(func.vmap(tenon.cholesky_inverse)(factors), tenon.cholesky_inverse(factors))


@pytest.mark.parametrize("shape", [(0, 4, 5), (0, 4, 5, 5), (0, 4, 5, 5, 5)])
def test_convolutions_of_no_images_with_kernels_of_each_sample(shape):
    convolve = {3: "conv1d", 4: "conv2d", 5: "conv3d"}[len(shape)]
    convolve = getattr(nn.functional, convolve)
    kernels = random(3, 6, 4, *[3] * (len(shape) - 2))
    got = func.vmap(lambda w: convolve(tenon.zeros(shape, dtype="float64"), w))(kernels)
    assert got.shape == (3, 0, 6, *[3] * (len(shape) - 2))


def test_operators_without_a_rule_are_counted():
    before = func.rules.loops().get("kron", 0)
    x = random(3, 2, 2)
    close(func.vmap(lambda x: tenon.kron(x, x))(x), tenon.stack([tenon.kron(m, m) for m in x]))
    assert func.rules.loops()["kron"] == before + 1


# -- autograd ---------------------------------------------------------------------------------------


def test_inference_mode():
    w = T([1.0], requires_grad=True)
    with tenon.inference_mode():
        assert not (w * 2).requires_grad
    with tenon.inference_mode(False):
        assert (w * 2).requires_grad

    @tenon.inference_mode
    def double(w):
        return w * 2

    @tenon.inference_mode()
    def triple(w):
        return w * 3

    assert not double(w).requires_grad and not triple(w).requires_grad
    assert (w * 2).requires_grad


def test_once_differentiable():
    class Cube(tenon.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @tenon.autograd.once_differentiable
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * tenon.tensor(3 * x.detach().numpy() ** 2)

    x = T([2.0], requires_grad=True)
    (first,) = tenon.grad(Cube.apply(x).sum(), x)
    assert first.tolist() == [12.0]
    (first,) = tenon.grad(Cube.apply(x).sum(), x, create_graph=True)
    assert first.tolist() == [12.0]
    with pytest.raises(RuntimeError, match=r"backward\(\) is differentiable once only"):
        tenon.grad(first.sum(), x)


# -- custom functions in batches --------------------------------------------------------------------


class Square(tenon.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x


class Product(tenon.Function):
    """x * w and x + w, whose second result has no gradient where none asks."""

    @staticmethod
    def forward(ctx, x, factor, w):
        ctx.save_for_backward(x, w)
        ctx.factor = factor
        return factor * x * w, x + w

    @staticmethod
    def backward(ctx, grad, of_sum):
        x, w = ctx.saved_tensors
        return grad * ctx.factor * w + of_sum, None, grad * ctx.factor * x + of_sum


class Straight(tenon.Function):
    """A constant, whose gradient depends on the sample."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return tenon.ones(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


def test_custom_functions_have_a_gradient_for_every_sample():
    x = tenon.tensor([[1.0, 2.0], [3.0, 4.0]])
    total = lambda t: Square.apply(t).sum()
    close(func.vmap(func.grad(total))(x), (2 * x).tolist())
    close(func.grad(lambda x: func.vmap(total)(x).sum())(x), (2 * x).tolist())
    close(func.vmap(func.hessian(total))(x), [[[2.0, 0.0], [0.0, 2.0]]] * 2)
    value, tangent = func.vmap(lambda x: func.jvp(total, (x,), (tenon.ones(2),)))(x)
    close(tangent, [6.0, 14.0])
    close(func.vmap(func.vmap(func.grad(Square.apply)))(x), (2 * x).tolist())
    close(func.vmap(func.grad(lambda t: (Straight.apply(t) * t).sum()))(x), (x * x + 1).tolist())


def test_custom_functions_of_what_all_samples_share():
    x, w = tenon.tensor([[1.0, 2.0], [3.0, 4.0]]), tenon.tensor([5.0, 7.0]).requires_grad_()
    func.vmap(lambda x: Product.apply(x, 3.0, w)[0])(x).sum().backward()
    assert w.grad.tolist() == [12.0, 18.0]  # the sum over the samples
    of_one = lambda x: func.grad(lambda w: Product.apply(x, 3.0, w)[0].sum())(w.detach())
    close(func.vmap(of_one)(x), (3 * x).tolist())  # one for each
    both = lambda x: func.grad(lambda w: sum(Product.apply(x, 3.0, w)).sum())(w.detach())
    close(func.vmap(both)(x), (3 * x + 1).tolist())


def test_custom_functions_in_place_under_vmap_need_a_tensor_of_each_sample():
    class AddOne(tenon.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(x)
            x.add_(1.0)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    x, shared = tenon.tensor([[1.0], [2.0]]).requires_grad_(), tenon.zeros(1).requires_grad_()
    with pytest.raises(RuntimeError, match="AddOne writes into a tensor that all samples share"):
        func.vmap(lambda x: AddOne.apply(shared * 1.0, x))(x)


def test_functions_of_the_library_have_a_gradient_for_every_sample():
    """Hooks of modules, checkpoints, embeddings and Bessel functions are custom functions."""
    from tenon.utils.checkpoint import checkpoint

    x = tenon.tensor([[0.5, 1.0], [-2.0, 3.0]])
    layer, seen = nn.Linear(2, 2), []
    layer.register_full_backward_hook(lambda module, ins, outs: seen.append(tuple(outs[0].shape)))
    want = tenon.ones(2) @ layer.weight.detach()
    close(func.vmap(func.grad(lambda t: layer(t).sum()))(x), [want.tolist()] * 2)
    assert seen == [(2,)]
    again = lambda t: checkpoint(lambda u: u.sin() * func.vmap(lambda v: v * v)(t), t).sum()
    close(func.vmap(func.grad(again))(x), (x.cos() * x * x + x.sin() * 2 * x).tolist(), 1e-5)
    rows = tenon.tensor([[0, 1, 1], [1, 1, 1]])
    read = lambda w, i: nn.functional.embedding(i, w, scale_grad_by_freq=True).sum()
    table = tenon.zeros(2, 1)
    each = func.vmap(func.grad(read), in_dims=(None, 0))(table, rows)
    assert each.tolist() == [[[1.0], [1.0]], [[0.0], [1.0]]]
    from tenon.compat.torch import special

    bessel = lambda t: special.bessel_j0(t).sum()
    close(func.vmap(func.grad(bessel))(x), func.grad(bessel)(x))
    hooked = []

    def with_hook(t):
        doubled = t * 1.0
        doubled.register_hook(lambda grad: hooked.append(tuple(grad.shape)) or grad * 2)
        return doubled.sum()

    assert func.vmap(func.grad(with_hook))(x).tolist() == [[2.0, 2.0]] * 2
    assert hooked == [(2,)]


@pytest.mark.parametrize(
    "function", [lambda t: nn.Parameter(t).sum(), lambda t: tenon.Tensor(t).sum()]
)
def test_a_lost_path_is_an_error_and_an_independent_one_zero(function):
    x = tenon.ones(3, 2)
    with pytest.raises(RuntimeError, match="vmap: expected a function of operators, got a tensor"):
        func.vmap(func.grad(function))(x)
    with pytest.raises(RuntimeError, match="its values and gradients are lost"):
        func.vmap(function)(x)
    assert func.vmap(func.grad(lambda t: t.detach().sum()))(x).tolist() == [[0.0] * 2] * 3


def test_attributes_of_a_sample():
    x = tenon.complex(tenon.ones(3, 2, 2), tenon.ones(3, 2, 2))
    assert func.vmap(lambda t: t.mH)(x).tolist() == x.mH.tolist()
    assert func.vmap(lambda t: t.H)(x).tolist() == x.mH.tolist()
    assert func.vmap(lambda t: t.to_device("cpu") * 2)(x).tolist() == (x * 2).tolist()
    for attribute in (lambda t: t.grad, lambda t: t.retain_grad()):
        with pytest.raises(RuntimeError, match="of a sample, which belongs to the tensor of all"):
            func.vmap(attribute)(tenon.ones(3, 2))
    for read in (lambda t: t.data_ptr(), np.asarray, copy.deepcopy):
        with pytest.raises(RuntimeError, match="expected a function that reads no values"):
            func.vmap(read)(tenon.ones(3, 2))
