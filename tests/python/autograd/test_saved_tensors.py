# SPDX-License-Identifier: Apache-2.0
"""Hooks on the tensors that calls save for backward, and hooks after the sum of a gradient."""

import gc
import threading
import weakref

import pytest
import reference_plugin
import tenon
from tenon.autograd import Function, disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks

SHIFT = 3.0


def leaf(*values):
    return tenon.tensor(list(values), requires_grad=True)


class Store:
    """Hooks that keep tensors in a list, as copies."""

    def __init__(self):
        self.kept = []
        self.asked = []

    def pack(self, tensor):
        assert not tenon.is_grad_enabled() and not tensor.requires_grad
        self.kept.append(tensor.clone())
        return len(self.kept) - 1

    def unpack(self, index):
        assert isinstance(index, int)
        self.asked.append(index)
        return self.kept[index]

    def hooks(self):
        return saved_tensors_hooks(self.pack, self.unpack)


def network(x, w):
    # Saved: arguments (multiply, matmul), results (exp, tanh), lists (concat needs shapes only).
    y = tenon.concat([x.exp() @ w, (x * w).tanh()])
    return (y.softmax(-1) * y).sum()


def inputs():
    values = tenon.tensor([[0.5, -1.0], [0.25, 2.0]])
    return values.clone().requires_grad_(), (values * 0.5 + 1).requires_grad_()


def gradients_of(result, tensors, create_graph=False):
    grads = tenon.grad(result, tensors, create_graph=create_graph)
    if not create_graph:
        return [g.tolist() for g in grads]
    total = sum((g * g).sum() for g in grads)
    return [g.tolist() for g in tenon.grad(total, tensors)]


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_are_the_same_with_hooks(create_graph):
    x, w = inputs()
    expected = gradients_of(network(x, w), (x, w), create_graph)
    store = Store()
    with store.hooks():
        result = network(x, w)
    assert store.kept and not store.asked
    assert gradients_of(result, (x, w), create_graph) == expected
    assert set(store.asked) == set(range(len(store.kept)))


def test_hooks_see_custom_functions():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            result = x * x * x
            ctx.save_for_backward(x, result, None)
            return result

        @staticmethod
        def backward(ctx, grad):
            x, result, nothing = ctx.saved_tensors
            assert nothing is None
            return grad * 3 * result / x

    x = leaf(2.0)
    expected = gradients_of(Cube.apply(x), [x], create_graph=True)
    store = Store()
    with store.hooks():
        y = Cube.apply(x)
    assert [kept.tolist() for kept in store.kept] == [[2.0], [8.0]]
    (first,) = tenon.grad(y, [x], create_graph=True)
    assert first.tolist() == [12.0]
    assert gradients_of((first * first).sum(), [x]) == expected


def test_the_innermost_hooks_count_and_threads_have_their_own():
    outer, inner = Store(), Store()
    x = leaf(1.0)
    with outer.hooks():
        a = x.exp()
        with inner.hooks():
            b = x.exp()
            thread = threading.Thread(target=lambda: x.exp())
            thread.start()
            thread.join()
        c = x.exp()
    d = x.exp()
    assert (len(outer.kept), len(inner.kept)) == (2, 1)
    (a + b + c + d).backward()
    assert x.grad.tolist() == pytest.approx([4 * 2.718281828], rel=1e-6)


def test_hooks_replace_what_is_saved():
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda t: t + SHIFT, lambda t: t - SHIFT + 1):
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]  # the rule read 1 more than the values


def test_backward_asks_again_when_the_graph_is_kept():
    x, store = leaf(2.0), Store()
    with store.hooks():
        y = (x * x).sum()
    y.backward(retain_graph=True)
    asked = len(store.asked)
    y.backward()
    assert x.grad.tolist() == [8.0] and len(store.asked) == 2 * asked
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


def test_what_hooks_made_is_dropped_with_the_graph():
    class Packed:
        def __init__(self, tensor):
            self.tensor = tensor

    alive = weakref.WeakSet()

    def pack(tensor):
        packed = Packed(tensor)
        alive.add(packed)
        return packed

    x = leaf(1.0)
    with saved_tensors_hooks(pack, lambda packed: packed.tensor):
        y, z = x.exp().sum(), (x * x).sum()
    assert len(alive) == 3
    y.backward()
    gc.collect()
    assert len(alive) == 2
    del z
    assert len(alive) == 0


def fail(value):
    raise KeyError("hook")


def test_errors_of_hooks():
    x = leaf(1.0)
    with saved_tensors_hooks(fail, fail), pytest.raises(KeyError, match="hook"):
        x.exp()
    assert x.exp().requires_grad  # the hooks are gone
    with saved_tensors_hooks(lambda t: None, fail):
        y = x.exp()
    with pytest.raises(KeyError, match="hook"):
        y.backward(retain_graph=True)
    for wrong, error, message in (
        (None, TypeError, "an unpack hook returns a Tensor, got NoneType"),
        (
            tenon.zeros(2),
            ValueError,
            r"gradient of \[exp\]: expected unpack to return .* shape \(1,\) and dtype float32 on "
            r"the same device, got shape \(2,\)",
        ),
        (tenon.zeros(1, dtype=tenon.float64), ValueError, "got shape .* dtype float64"),
    ):
        with saved_tensors_hooks(lambda t: 0, lambda _, wrong=wrong: wrong):
            y = x.exp()
        with pytest.raises(error, match=message):
            y.backward()
    with pytest.raises(TypeError):
        saved_tensors_hooks(1, 2)


def test_a_packed_tensor_that_changes_is_noticed():
    x = leaf(1.0)
    y = x + 0
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        z = y * y
    y.detach().zero_()
    with pytest.raises(RuntimeError, match="pack hook returned was modified in place: expected"):
        z.backward()


def test_blocks_end_on_the_thread_that_entered_them():
    store, errors = Store(), []
    hooks = store.hooks()

    def leave():
        try:
            hooks.__exit__()
        except RuntimeError as error:
            errors.append(str(error))

    with hooks:
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        with hooks:  # the same object again
            leaf(1.0).exp()
    assert len(store.kept) == 1 and "on the thread that entered it" in errors[0]
    leave()
    assert len(errors) == 2
    leaf(1.0).exp()
    assert len(store.kept) == 1

    def abandoned():
        with store.hooks():
            yield

    generator = abandoned()
    next(generator)
    leaf(1.0).exp()
    generator.close()
    leaf(1.0).exp()
    assert len(store.kept) == 2


def test_save_on_cpu_and_disabling():
    x, w = inputs()
    expected = gradients_of(network(x, w), (x, w))
    with save_on_cpu():
        result = network(x, w)
    assert gradients_of(result, (x, w)) == expected
    with disable_saved_tensors_hooks("not in here"):
        with pytest.raises(RuntimeError, match="^not in here$"), save_on_cpu():
            pass
        x.exp()
    with save_on_cpu():
        pass


@reference_plugin.needs_reference
def test_save_on_cpu_moves_to_the_host_and_back():
    reference_plugin.load()
    x, w = (tensor.detach().to("reference").requires_grad_() for tensor in inputs())

    def in_use(function):
        before = tenon.memory.stats("reference")["current"]
        result = function()
        return result, tenon.memory.stats("reference")["current"] - before

    def compute():
        return (x @ w).exp().sum()

    plain, kept = in_use(compute)
    expected = gradients_of(plain, (x, w))
    del plain
    with save_on_cpu():
        result, kept_with_hooks = in_use(compute)
    assert kept_with_hooks < kept
    assert gradients_of(result, (x, w)) == expected
    assert tenon.grad(compute(), [x])[0].device.kind == "reference"


# -- hooks after accumulation ----------------------------------------------------------------------


def test_a_hook_after_accumulation_sees_the_whole_sum():
    x, seen = leaf(1.0, 2.0), []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.tolist())))
    (x * x + x).sum().backward()
    assert seen == [(True, [3.0, 5.0])]
    (x * 2).sum().backward()
    assert seen[1:] == [(True, [5.0, 7.0])]
    tenon.grad((x * x).sum(), [x])  # leaves .grad alone
    handle.remove()
    x.sum().backward()
    assert len(seen) == 2


def test_a_gradient_may_be_used_and_dropped_before_the_next_one_arrives():
    # The second layer's weight is whole, and stepped on, while the first one's is not there yet.
    order = []
    first, second = leaf(2.0), leaf(3.0)

    def step(name, other):
        def hook(parameter):
            order.append((name, other.grad is None))
            with tenon.no_grad():
                parameter -= parameter.grad
            parameter.grad = None

        return hook

    first.register_post_accumulate_grad_hook(step("first", second))
    second.register_post_accumulate_grad_hook(step("second", first))
    hidden = (first * 5.0).exp().log()
    arrived = []
    hidden.register_hook(lambda grad: arrived.append(len(order)))
    (hidden * second).sum().backward()
    assert order == [("second", True), ("first", True)]
    assert arrived == [1]
    assert first.grad is None and second.grad is None
    assert second.tolist() == pytest.approx([-7.0]) and first.tolist() == pytest.approx([-13.0])


def test_hooks_after_accumulation_refuse_results_and_report_errors():
    x = leaf(1.0)
    with pytest.raises(
        RuntimeError, match=r"needs a leaf .* got a result of exp; use register_hook"
    ):
        x.exp().register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="needs a leaf that requires grad, got a tensor that"):
        tenon.zeros(1).register_post_accumulate_grad_hook(print)
    with pytest.raises(TypeError, match=r"register_post_accumulate_grad_hook\(\): expected a func"):
        x.register_post_accumulate_grad_hook(1)
    x.register_post_accumulate_grad_hook(fail)
    with pytest.raises(KeyError, match="hook"):
        x.exp().backward()
    assert x.grad is not None


def test_a_leaf_that_some_consumers_give_nothing_gets_its_hook_at_the_end():
    class Half(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    x, seen = leaf(1.0), []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    # exp is never visited, as Half hands its input no gradient.
    Half.apply(x * 2, x.exp()).sum().backward()
    assert seen == [[2.0]]


def test_a_cycle_through_a_hook_is_collected():
    x = leaf(1.0)
    mark = weakref.ref(x)
    x.register_post_accumulate_grad_hook(lambda t, x=x: None)
    del x
    gc.collect()
    assert mark() is None
