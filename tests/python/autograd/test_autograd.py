# SPDX-License-Identifier: Apache-2.0
"""Gradients from Python: the switch, hooks, custom functions, higher orders."""

import gc
import threading
import weakref

import numpy as np
import pytest
import tenon
from tenon.autograd import Function, gradcheck


def leaf(*values):
    return tenon.tensor(list(values), requires_grad=True)


def test_backward_accumulates():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    x.grad = None
    assert x.grad is None
    x.grad = tenon.zeros(2)
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="grad: expected a Tensor, got list"):
        x.grad = [1.0]


def test_gradient_argument():
    x = leaf(1.0, 2.0)
    y = x * 2
    with pytest.raises((ValueError, RuntimeError)):
        y.backward()
    y.backward(tenon.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 20.0]


def test_attributes():
    x = leaf(1.0)
    y = x + 1
    assert x.requires_grad and x.is_leaf and x.grad_fn is None
    assert y.requires_grad and not y.is_leaf and "add" in y.grad_fn
    z = y.detach()
    assert not z.requires_grad and z.data_ptr() == y.data_ptr()
    assert not tenon.zeros(1).requires_grad and tenon.zeros(1).requires_grad_().requires_grad
    with pytest.raises((ValueError, RuntimeError)):
        y.requires_grad = False
    with pytest.raises((ValueError, TypeError)):
        tenon.tensor([1]).requires_grad = True


def test_recording_switch():
    x = leaf(1.0)
    assert tenon.is_grad_enabled()
    with tenon.no_grad():
        assert not tenon.is_grad_enabled() and not (x * 2).requires_grad
        with tenon.enable_grad():
            assert (x * 2).requires_grad
        assert not tenon.is_grad_enabled()
    assert tenon.is_grad_enabled()

    @tenon.no_grad()
    def quiet(value):
        """Doc."""
        return value * 2

    assert not quiet(x).requires_grad and quiet.__name__ == "quiet" and quiet.__doc__ == "Doc."
    with tenon.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    with pytest.raises(ZeroDivisionError), tenon.no_grad():
        1 / 0
    assert tenon.is_grad_enabled()


def test_the_switch_belongs_to_a_thread():
    seen = []
    with tenon.no_grad():
        thread = threading.Thread(target=lambda: seen.append(tenon.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_grad_and_higher_orders():
    x = leaf(2.0)
    (first,) = tenon.grad(x**3, x, create_graph=True)
    (second,) = tenon.grad(first, x, create_graph=True)
    (third,) = tenon.grad(second, x)
    assert [t.item() for t in (first, second, third)] == pytest.approx([12.0, 12.0, 6.0])
    assert x.grad is None
    y = leaf(1.0)
    with pytest.raises((ValueError, RuntimeError)):
        tenon.grad(x * 2, y)
    assert tenon.grad(x * 2, y, allow_unused=True) == (None,)
    with pytest.raises(ValueError, match="expected 1 gradients, one for each output, got 2"):
        tenon.grad(x * 2, x, grad_outputs=(None, None))


def test_graphs_are_used_once():
    x = leaf(2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]
    with pytest.raises(RuntimeError):
        y.backward()


def test_changed_tensors_are_noticed():
    x = leaf(2.0)
    y = x * 3
    z = y * y
    y += 1
    with pytest.raises(RuntimeError):
        z.backward()
    with pytest.raises((ValueError, RuntimeError)):
        x += 1  # a leaf


def test_hooks():
    x = leaf(1.0)
    seen = []
    handle = x.register_hook(lambda grad: seen.append(grad.item()))
    double = x.register_hook(lambda grad: grad * 2)
    (x * 3).backward()
    assert seen == [3.0] and x.grad.item() == 6.0
    handle.remove()
    handle.remove()
    with double:
        pass
    x.grad = None
    (x * 3).backward()
    assert seen == [3.0] and x.grad.item() == 3.0
    y = x * 2
    y.register_hook(lambda grad: grad * 10)
    y.retain_grad()
    x.grad = None
    (y * 1).backward()
    assert x.grad.item() == 20.0 and y.grad is not None
    with pytest.raises(TypeError, match=r"register_hook\(\): expected a function, got int"):
        x.register_hook(3)


def test_errors_in_hooks_arrive():
    x = leaf(1.0)

    class Mine(Exception):
        pass

    def fail(grad):
        raise Mine("from the hook")

    x.register_hook(fail)
    with pytest.raises(Mine, match="from the hook"):
        (x * 2).backward()
    y = leaf(1.0)
    y.register_hook(lambda grad: 3)
    with pytest.raises(TypeError, match="a gradient hook returns a Tensor or None, got int"):
        (y * 2).backward()


def test_cycles_through_hooks_are_collected():
    class Watched:
        pass

    watched = Watched()
    gone = weakref.ref(watched)
    x = leaf(1.0)

    def hook(grad, x=x, watched=watched):
        return None

    x.register_hook(hook)
    del x, hook, watched
    gc.collect()
    assert gone() is None


class Cube(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * x * scale

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad * ctx.scale, None


def test_custom_function():
    x = leaf(2.0, 3.0)
    y = Cube.apply(x, 2.0)
    assert y.tolist() == [16.0, 54.0] and y.grad_fn == "Cube"
    y.sum().backward()
    assert x.grad.tolist() == [24.0, 54.0]
    with tenon.no_grad():
        assert not Cube.apply(x, 1.0).requires_grad
    (first,) = tenon.grad(Cube.apply(x, 1.0).sum(), x, create_graph=True)
    (second,) = tenon.grad(first.sum(), x)
    assert second.tolist() == [12.0, 18.0]


def test_custom_function_with_several_results():
    class Both(Function):
        @staticmethod
        def forward(ctx, x, y):
            assert not tenon.is_grad_enabled()
            ctx.needs = ctx.needs_input_grad
            out = x * y
            ctx.save_for_backward(x, y, out)
            return out, x + y

        @staticmethod
        def backward(ctx, product, total):
            x, y, out = ctx.saved_tensors
            assert ctx.needs == (True, False) and out.tolist() == [6.0]
            return product * y + total, None

    x, y = leaf(2.0), tenon.tensor([3.0])
    product, total = Both.apply(x, y)
    product.backward(retain_graph=True)
    assert x.grad.tolist() == [3.0]  # zeros for the other
    total.backward()
    assert x.grad.tolist() == [4.0]


def test_custom_functions_are_checked():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    with pytest.raises(ValueError, match="Wrong.backward: expected 1 gradients, .* got 2"):
        Wrong.apply(leaf(1.0)).backward()
    with pytest.raises(NotImplementedError, match="a Function defines forward"):
        Function.apply(leaf(1.0))


def test_returned_arguments_keep_their_history():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 5

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x and x.is_leaf
    y.backward()
    assert x.grad.tolist() == [5.0]


def test_saved_tensors_are_freed_with_the_graph():
    class Holder:
        pass

    class Keep(Function):
        @staticmethod
        def forward(ctx, x, holder):
            ctx.holder = holder
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    holder = Holder()
    gone = weakref.ref(holder)
    y = Keep.apply(leaf(1.0), holder)
    del holder
    assert gone() is not None
    del y
    gc.collect()
    assert gone() is None


def test_gradcheck():
    x = tenon.tensor([0.5, -1.5], dtype="float64", requires_grad=True)
    y = tenon.tensor([2.0, 0.3], dtype="float64", requires_grad=True)
    assert gradcheck(lambda x, y: (x * y).sin() + x, (x, y))

    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    with pytest.raises(AssertionError, match="gradcheck: input 0, element 0: expected"):
        gradcheck(Wrong.apply, (x,))
    with pytest.raises(ValueError, match="expected an input that requires grad"):
        gradcheck(lambda x: x, (tenon.zeros(1),))


def test_threads_run_backward_at_once():
    errors = []

    def work():
        try:
            for _ in range(100):
                x = leaf(1.0, 2.0)
                x.register_hook(lambda grad: grad * 2)
                (Cube.apply(x, 1.0) * x).sum().backward()
                assert x.grad.tolist() == [8.0, 64.0]
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


VIEWS = {
    "slice": lambda x: x[0:2],
    "steps": lambda x: x[::2],
    "backwards": lambda x: x.flip(0),
    "element": lambda x: x[1],
    "key": lambda x: x[1:, None, 0],
    "everything": lambda x: x[...],
    "transposed": lambda x: x.T,
    "reshaped": lambda x: x.reshape(2, 3),
    "unsqueezed": lambda x: x.unsqueeze(0),
    "expanded": lambda x: x.expand(4, 3, 2),
    "diagonal": lambda x: x.diagonal(),
    "of a view": lambda x: x[1:][0],
    "of a transposed view": lambda x: x.T[1],
    "iterated": lambda x: list(x)[2],
}


@pytest.mark.parametrize("take", VIEWS.values(), ids=VIEWS)
def test_a_view_taken_before_sees_its_bases_first_history(take):
    w = tenon.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
    base = tenon.zeros((3, 2))
    view = take(base)
    assert not view.requires_grad
    base += w
    assert view.requires_grad and not view.is_leaf
    (view * view).sum().backward()
    seen, w.grad = w.grad, None
    copied = take(base * 1.0)  # taken afterwards
    (copied * copied).sum().backward()
    assert seen.tolist() == w.grad.tolist()


def test_writing_into_a_view_taken_before_is_seen_by_the_base():
    w = tenon.tensor([3.0, 4.0], requires_grad=True)
    base = tenon.ones(4)
    view, other = base[0:2], base[1:3]
    view *= w
    view[0] = 5.0  # a number: nothing of w remains there
    assert base.tolist() == [5.0, 4.0, 1.0, 1.0]
    (base * base).sum().backward(retain_graph=True)
    assert w.grad.tolist() == [0.0, 8.0]
    w.grad = None
    (other * other).sum().backward()
    assert w.grad.tolist() == [0.0, 8.0]


def test_views_taken_without_gradients_and_detached_ones_are_constants():
    w = tenon.tensor([3.0, 4.0], requires_grad=True)
    base = tenon.ones(2)
    detached = base[0:1].detach()
    base *= w
    with tenon.no_grad():
        blind = base[0:1]
        assert not (blind * w[0]).requires_grad
    for constant in (detached, blind, base.detach()[0:1]):
        assert not constant.requires_grad
        assert not (constant * constant).requires_grad


def test_parameters_in_one_memory_stay_leaves():
    memory = tenon.zeros(5)
    first, second = memory[0:2].requires_grad_(), memory[2:5].requires_grad_()
    for _ in range(3):
        part = second[1:]
        loss = ((first - 1.0) ** 2).sum() + ((part - 2.0) ** 2).sum()
        first.grad = second.grad = None
        loss.backward()
        with tenon.no_grad():
            first -= 0.5 * first.grad
            second -= 0.5 * second.grad
        assert first.is_leaf and second.is_leaf
    assert memory.tolist() == [1.0, 1.0, 0.0, 2.0, 2.0]


def test_a_gradient_for_a_result_that_passes_none_on_is_an_error():
    x = tenon.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    out, mean, var = tenon.batch_norm(x)
    with pytest.raises(NotImplementedError, match=r"\[batch_norm\].*`mean`, `var`.*detach"):
        (out.sum() + mean.sum()).backward()
    out, mean, var = tenon.batch_norm(x)
    (out.sum() + mean.detach().sum() + var.detach().sum()).backward()
    assert x.grad.shape == (2, 2)


@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 3), (2, 0, 3), (2, 3, 4)])
def test_stack_and_its_gradient_along_every_axis(shape):
    random = np.random.default_rng(7)
    for axis in range(-len(shape) - 1, len(shape) + 1):
        rows = [np.asarray(random.random(shape), dtype=np.float32) for _ in range(3)]
        leaves = [tenon.tensor(row, requires_grad=True) for row in rows]
        stacked, expected = tenon.stack(leaves, axis), np.stack(rows, axis)
        assert stacked.is_contiguous()
        np.testing.assert_array_equal(stacked.detach().numpy(), expected, strict=True)
        gradient = np.asarray(random.random(expected.shape), dtype=np.float32)
        stacked.backward(tenon.tensor(gradient))
        for i, leaf in enumerate(leaves):
            np.testing.assert_array_equal(leaf.grad.numpy(), np.take(gradient, i, axis))


@pytest.mark.parametrize("bounds", [(0.3, 0.8), (0.3, None), (None, 0.8), (None, None)])
def test_limiting_in_place_has_the_gradient_of_limiting(bounds):
    x = tenon.tensor([0.2, 0.5, 0.9]).requires_grad_()
    want = tenon.grad((x * 1.0).clamp(*bounds).square().sum(), x)[0].tolist()
    y = x * 1.0
    assert y.clamp_(*bounds) is y
    assert tenon.grad(y.square().sum(), x)[0].tolist() == want
    low, z = tenon.tensor(0.3, requires_grad=True), x.detach().clone()
    z.clamp_(low)
    assert tenon.grad(z.sum(), low)[0].item() == 1.0
    memory = x.detach().clone()
    place = memory.data_ptr()
    assert memory.clamp_(*bounds).data_ptr() == place and not memory.requires_grad


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.logsumexp(),
        lambda x: tenon.logaddexp(x[0], x[1]),
        lambda x: tenon.logaddexp2(x[0], x[1]),
    ],
)
def test_what_is_minus_infinity_has_no_share_of_a_sum_of_exponentials(function):
    inf = float("inf")
    for values, want in ([-inf, -inf], [0, 0]), ([-inf, 1], [0, 1]), ([2, -inf], [1, 0]):
        x = tenon.tensor(values, dtype="float64").requires_grad_()
        (first,) = tenon.grad(function(x), x, create_graph=True)
        assert first.tolist() == want
        assert tenon.grad(first.sum(), x)[0].tolist() == [0, 0]


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_hook_that_writes_into_its_gradient_changes_its_own_branch_alone(order, create_graph):
    x, y = (tenon.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    a, b = x * 1.0, y * 1.0

    def write(grad):
        grad.detach().mul_(10.0)

    (a, b)[order].register_hook(write)
    seed = tenon.tensor([1.0, 1.0])
    grads = tenon.grad(a + b, [x, y], seed, create_graph=create_graph)
    want = [[1.0, 1.0], [1.0, 1.0]]
    want[order] = [10.0, 10.0]
    assert [each.tolist() for each in grads] == want
    assert seed.tolist() == [1.0, 1.0]


def test_a_hook_of_a_module_may_not_write_into_its_gradient():
    layer, x = tenon.nn.Linear(2, 2), tenon.ones(1, 2).requires_grad_()

    def write(module, grad_input, grad_output):
        grad_output[0].mul_(2.0)

    handle = layer.register_full_backward_hook(write)
    with pytest.raises(RuntimeError, match="a backward hook of a module wrote into a gradient"):
        (layer(x) * tenon.ones(1, 2)).sum().backward()
    handle.remove()
    layer.register_full_backward_hook(lambda module, ins, outs: (ins[0] * 2.0,))
    layer(x).sum().backward()
    want = tenon.ones(1, 2) @ layer.weight.detach() * 2.0
    assert x.grad.tolist() == want.tolist()


def test_the_sixth_setting_of_grad_is_only_inputs():
    x, y = (tenon.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    with pytest.raises(RuntimeError, match="unused|depend"):
        tenon.grad(x.sum(), [x, y], None, True, True, True)
    assert tenon.grad(x.sum(), [x, y], None, True, True, True, True)[1] is None
    assert tenon.grad(x.sum(), [x, y], materialize_grads=True)[1].tolist() == [0.0, 0.0]
    with pytest.raises(NotImplementedError, match="grad: expected only_inputs True, got False"):
        tenon.grad(x.sum(), x, only_inputs=False)
