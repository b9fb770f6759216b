# SPDX-License-Identifier: Apache-2.0
"""Control flow over tensors in exported functions: modules, the programs that it becomes, and what is left as it is."""

import re

import pytest
import tenon
from program_agreement import VALUES, X, agree, same, steps
from tenon import nn
from tenon.jit import Dim
from test_syntax_tree_branches import elifs, if_else, return_of_several
from test_syntax_tree_loops import rows, rows_into_a_list, while_break, while_counting

# -- modules -------------------------------------------------------------------------------------------------


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        y = self.layer(x)
        return y if y.sum() > 0 else -y


class Gated(Base):
    def __init__(self):
        super().__init__()
        self.__hidden = 2
        self.blocks = nn.Sequential(Base(), nn.ReLU())
        self.register_forward_hook(lambda module, args, result: result + 1)

    def forward(self, x):
        y = super().forward(x)
        if y.max() > 1:
            y = super().forward(y) * self.__hidden
        return self.blocks(y) + self.twice(x)

    @staticmethod
    def scale(x):
        return x * 2 if x[0] > 0 else x * 3

    @classmethod
    def of(cls, x):
        return cls.scale(x) + 1 if x[1] > 0 else x

    def twice(self, x):
        return self.scale(x) + self.of(x)


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Buffer(tenon.zeros(3))
        self.cache = {}

    def forward(self, x):
        if x.sum() > 0:
            self.last = self.last + x
            self.cache["x"] = x * 2
        else:
            self.cache["x"] = x * 3
        return self.last * 1, self.cache["x"]


def test_modules():
    model = Gated()
    agree(model)
    agree(model.twice)
    program = tenon.export(model, X)
    assert {"layer.weight", "blocks.0.layer.bias"} <= set(program.leaves)


def test_attributes_and_items_that_branches_set():
    def run(x):
        model = Stateful()
        return model(x), model(x + 1)

    agree(run)


def test_gradients_pass_through_the_program():
    model = Gated()
    program = tenon.export(model, X)
    for value in VALUES:
        a, b = value.clone().requires_grad_(), value.clone().requires_grad_()
        same(
            tenon.grad(program(a).sum(), [a, *model.parameters()]),
            tenon.grad(model(b).sum(), [b, *model.parameters()]),
        )


def test_a_training_step_takes_rows_one_by_one():
    weight = tenon.tensor([0.5, 1.0, 2.0], requires_grad=True)

    def step(x):
        weight.grad = None
        h = tenon.zeros(())
        for row in x * weight:
            h = h * 0.5 + row
        h.backward()
        return h.detach()

    program = tenon.export(step, X)
    assert steps(program, "scan") == 0
    program(X * 2)
    got = weight.grad.clone()
    step(X * 2)
    same(got, weight.grad)


def test_gradients_inside_of_an_exported_function_are_refused():
    weight = tenon.tensor([0.5, 1.0, 2.0], requires_grad=True)

    def step(x):
        loss = (x * weight).sum() if x.sum() > 0 else (x - weight).sum()
        return tenon.grad(loss, weight)[0]

    with pytest.raises(NotImplementedError, match="if: gradients through it inside an exported"):
        tenon.export(step, X)


# -- the programs --------------------------------------------------------------------------------------------


def everything(x):
    total, n = x * 0, 0
    while total.abs().sum() < 50 and n < 10:
        n += 1
        if x.sum() > 0:
            total = total + x
        elif x.sum() < -3:
            total = total - x * 2
            if n > 2:
                break
        else:
            continue
        for i in range((total > 0).sum()):
            total = total + i
    return total, n


def test_nested_control_flow_is_saved_and_loaded(tmp_path):
    program = agree(everything)
    program.save(tmp_path / "flow.tenon")
    loaded = tenon.jit.load(tmp_path / "flow.tenon")
    assert str(loaded) == str(program)
    for value in VALUES:
        same(loaded(value), everything(value))
        same(loaded.freeze()(value), everything(value))


def test_a_function_without_control_flow_over_tensors_has_the_program_that_it_had():
    def function(x, n=3, flag=True):
        parts = []
        for k in range(n):
            if k % 2 and flag:
                continue
            parts.append(
                x.abs()
                .sqrt()
                .sum()
                * k
            )  # fmt: skip
        while len(parts) < 5 and not parts == []:
            parts.append(
                tenon.where(
                    x > 0,
                    x,
                    x * 2,
                ).sum()
            )
        return [p if n > 2 else None for p in parts if 0 < n < 10]

    plain = tenon.export(tenon.jit.not_to_static(lambda x: function(x)), X)
    assert str(tenon.export(function, X)) == str(plain)
    model = nn.Sequential(nn.Linear(3, 4), nn.TransformerEncoderLayer(4, 2, 8).eval())
    x = tenon.rand(2, 5, 3)
    texts = [str(tenon.export(m, x)) for m in (model, tenon.jit.not_to_static(model))]
    assert texts[0] == texts[1]


def test_branches_are_steps_of_the_program():
    assert steps(agree(elifs), "cond") == 3
    assert steps(agree(while_counting), "while") == 1
    program = agree(rows)
    assert steps(program, "scan") == 1 and "select" not in str(program)
    assert steps(agree(rows_into_a_list), "scan") == 0


def test_steps_name_the_lines_of_the_function():
    program = tenon.export(if_else, X)
    first = if_else.__code__.co_firstlineno
    lines = [int(n) for n in re.findall(r'test_syntax_tree_branches.py":(\d+)', str(program))]
    assert sorted({n - first for n in lines}) == [1, 2, 4]


def test_tracebacks_name_the_lines_of_the_function():
    def function(x):
        if x.sum() > 0:
            y = x @ tenon.ones(5)
        else:
            y = x
        return y

    with pytest.raises(ValueError) as caught:
        tenon.export(function, X)
    lines = [(e.path.name, e.lineno + 1) for e in caught.traceback]
    assert ("test_syntax_tree.py", function.__code__.co_firstlineno + 2) in lines


@pytest.mark.parametrize("function", [if_else, everything, rows, while_break, return_of_several])
def test_sizes_may_be_left_open(function):
    def padded(x):
        if x.shape[0] > 2:  # of a size: a requirement, no branch
            x = x * 1
        return function(x)

    dim = Dim("n", min=3, max=12)
    program = tenon.export(padded, X, dynamic_shapes=[{0: dim}])
    for n in (3, 4, 7, 12):
        for sign in (1, -1):
            x = tenon.arange(n, dtype="float32") * sign - 1.5
            same(program(x), padded(x))


def test_a_branch_on_a_size_is_required():
    def function(x):
        if x.shape[0] > 4:
            return x * 2
        return x if x.sum() > 0 else -x

    with pytest.raises(RuntimeError, match="the function does something else at another size"):
        tenon.export(function, X, dynamic_shapes=[{0: Dim("n", min=2, max=12)}])
    program = tenon.export(function, X, dynamic_shapes=[{0: Dim("n", min=2, max=4)}])
    assert "require n <= 4" in str(program)


def test_random_numbers_in_branches():
    def function(x):
        if x.sum() > 0:
            return x + tenon.rand(3)
        return x + tenon.randn(3)

    program = tenon.export(function, X)
    for value in VALUES:
        tenon.manual_seed(3)
        got = program(value)
        tenon.manual_seed(3)
        same(got, function(value))


def test_a_loop_that_would_not_end_on_the_other_side_is_not_run():
    def function(x):
        y = x
        if x.max() > 0:
            while y.max() < 100:
                y = y * 2
        while y.max() < 0:
            z = y
            while z.max() < 50:
                z = z - y
            y = z
        return y

    for example in (X * 0, X, X.abs() * -1):
        program = tenon.export(function, example)
        for value in VALUES:
            same(program(value), function(value))


# -- what is left as it is -----------------------------------------------------------------------------------


def test_not_to_static():
    @tenon.jit.not_to_static
    def function(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(NotImplementedError, match="takes data past the program"):
        tenon.export(function, X)
    with pytest.raises(NotImplementedError, match="takes data past the program"):
        tenon.export(lambda x: function(x) + 1, X)
    module = tenon.jit.not_to_static(Base())
    with pytest.raises(NotImplementedError, match="takes data past the program"):
        tenon.export(module, X)


def test_generators_are_left_as_they_are():
    def parts(x):
        yield x
        if x.sum() > 0:
            yield x * 2

    with pytest.raises(NotImplementedError, match="takes data past the program"):
        tenon.export(lambda x: list(parts(x)), X)
    with pytest.raises(ValueError, match="parts is left as it is: it is a generator"):
        tenon.graph.rewritten_source(parts)

    def plain(x):
        yield x
        yield x * 2

    agree(lambda x: list(plain(x)))


def test_functions_without_source_are_left_as_they_are():
    space = {}
    exec("def function(x):\n    return x if x.sum() > 0 else -x", space)
    with pytest.raises(NotImplementedError, match="takes data past the program"):
        tenon.export(space["function"], X)
    with pytest.raises(ValueError, match="there is no source of <string>"):
        tenon.graph.rewritten_source(space["function"])


def test_a_file_that_was_edited_is_not_believed(tmp_path, monkeypatch):
    file = tmp_path / "edited_module.py"
    file.write_text("def function(x):\n    return x * 2 if x.sum() > 0 else x\n")
    monkeypatch.syspath_prepend(tmp_path)
    import edited_module

    file.write_text("def function(x):\n    return x * 5 if x.sum() > 0 else x\n")
    with pytest.raises(ValueError, match="is another one than when it was imported"):
        tenon.graph.rewritten_source(edited_module.function)
    with pytest.raises(NotImplementedError, match="takes data past the program"):
        tenon.export(edited_module.function, X)


def test_two_lambdas_on_a_line():
    one, two = (lambda x: x if x.sum() > 0 else -x), (lambda x: x * 2 if x.sum() > 0 else x * 3)
    agree(one)
    agree(two)


def test_rewritten_source():
    text = tenon.graph.rewritten_source(if_else)
    assert "_tenon.if_(" in text and "def _tenon_then_1():" in text and "y = x * 2" in text
    assert "_tenon.while_(" in tenon.graph.rewritten_source(while_counting)
    assert "super(__class__, self)" in tenon.graph.rewritten_source(Gated().forward)
    assert "super(__class__, self)" in tenon.graph.rewritten_source(Gated())


def test_the_function_itself_is_unchanged():
    code = if_else.__code__
    tenon.export(if_else, X)
    assert if_else.__code__ is code
    same(if_else(X), X * 2)
