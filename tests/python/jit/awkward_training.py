# SPDX-License-Identifier: Apache-2.0
"""Awkward programs (awkward_programs.py) with modules, optimizers and gradients."""

import tenon
from awkward_programs import program, rand
from tenon import nn, optim
from tenon.nn import functional as F


@program(True)
def module_in_training_and_not():
    tenon.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))

    def function(x, i):
        return model(x)

    def driver(x, i):
        model.train(i < 3)
        return function, x

    function.driver = driver
    function.state = lambda: [t for t in model.state_dict().values() if isinstance(t, tenon.Tensor)]
    return function


@program(True)
def module_attribute_changes():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 2.0
            self.inner = nn.Linear(4, 4, bias=False)

        def forward(self, x):
            return self.inner(x) * self.factor

    tenon.manual_seed(4)
    module = Scale()

    def function(x, i):
        return module(x)

    def driver(x, i):
        module.factor = 2.0 if i < 3 else 9.0
        return function, x

    function.driver = driver
    return function


@program(True)
def parameter_is_replaced():
    tenon.manual_seed(5)
    module = nn.Linear(4, 2)

    def function(x, i):
        return module(x)

    def driver(x, i):
        if i == 3:
            module.weight = nn.Parameter(rand(2, 4, seed=9))
        return function, x

    function.driver = driver
    return function


@program(True)
def training_step():
    tenon.manual_seed(6)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    target = rand(3, 2, seed=7)

    def function(x, i):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    function.state = lambda: list(model.state_dict().values())
    return function


@program(True)
def learning_rate_changes():
    tenon.manual_seed(6)
    model = nn.Linear(4, 2)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    def function(x, i):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    def driver(x, i):
        optimizer.param_groups[0]["lr"] = 0.1 if i < 3 else 0.001
        return function, x

    function.driver = driver
    function.state = lambda: list(model.state_dict().values())
    return function


@program(False)
def adam_counts_in_python():
    tenon.manual_seed(6)
    model = nn.Linear(4, 2)
    optimizer = optim.Adam(model.parameters(), lr=0.1, capturable=False)

    def function(x, i):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    function.state = lambda: list(model.state_dict().values())
    return function


@program(False)
def gradients_add_up():
    tenon.manual_seed(6)
    model = nn.Linear(4, 2)

    def function(x, i):
        model(x).square().sum().backward()

    function.state = lambda: [p.grad for p in model.parameters()]
    return function


@program(True)
def gradients_through_the_result():
    w = rand(4, 2, seed=3)
    w.requires_grad = True

    def function(x, i):
        return (x @ w).tanh()

    def after(y):
        w.grad = None
        (y * y).sum().backward()
        return w.grad

    function.unpack = after
    return function


@program(True)
def without_gradients_inside():
    w = rand(4, 2, seed=3)
    w.requires_grad = True

    def function(x, i):
        with tenon.no_grad():
            y = x @ w
        return y + (x @ w).detach()

    return function


@program(False)
def custom_function():
    class Double(tenon.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    w = rand(3, 4, seed=3)
    w.requires_grad = True

    def function(x, i):
        return Double.apply(w) * x

    def after(y):
        w.grad = None
        y.sum().backward()
        return w.grad

    function.unpack = after
    return function


@program(True)
def hook_on_a_module():
    tenon.manual_seed(8)
    module = nn.Linear(4, 4)
    module.register_forward_hook(lambda module, args, result: result * 2)
    return lambda x, i: module(x)


@program(True)
def hook_is_added_late():
    tenon.manual_seed(8)
    module = nn.Linear(4, 4)

    def function(x, i):
        return module(x)

    def driver(x, i):
        if i == 3:
            module.register_forward_hook(lambda module, args, result: result * 2)
        return function, x

    function.driver = driver
    return function


@program(True)
def dropout():
    drop = nn.Dropout(0.5)
    return lambda x, i: drop(x)
