# SPDX-License-Identifier: Apache-2.0
"""Changes of layers, operators, functions with gradients of their own and settings (awkward_mutations.py)."""

import pathlib
import tempfile

import tenon
from awkward_mutations import mutation
from awkward_programs import rand
from tenon import nn, optim

# -- modules of layers ---------------------------------------------------------------------------


class Net(nn.Module):
    gain = 1.0

    def __init__(self):
        self.linear = nn.Linear(4, 4)
        self.mode = "plain"

    def helper(self, x):
        return x * 2

    def forward(self, x):
        return self.helper(self.linear(x)) * self.gain


def net_of(cls=Net):
    tenon.manual_seed(0)
    return type("Net", (cls,), {})()


@mutation(True)
def helper_of_a_module_is_replaced():
    net = net_of()
    return lambda x: net(x), lambda: setattr(type(net), "helper", lambda self, x: x - 1)


@mutation(True)
def helper_of_one_module_is_replaced():
    net = net_of()
    return lambda x: net(x), lambda: setattr(net, "helper", lambda x: x - 1)


@mutation(True)
def attribute_of_the_class_of_a_module():
    net = net_of()
    return lambda x: net(x), lambda: setattr(type(net), "gain", 3.0)


@mutation(True)
def forward_of_a_base_of_a_module():
    class Base(nn.Module):
        def forward(self, x):
            return x * 2

    net = type("Derived", (Base,), {})()
    return lambda x: net(x), lambda: setattr(Base, "forward", lambda self, x: x - 1)


@mutation(True)
def forward_of_one_module():
    net = net_of()
    return lambda x: net(x), lambda: setattr(net, "forward", lambda x: x - 1)


@mutation(True)
def forward_of_a_layer_of_the_package():
    net = nn.Sequential(nn.ReLU())
    forward = nn.ReLU.forward

    def change():
        nn.ReLU.forward = lambda self, x: x - 1

    change.undo = lambda: setattr(nn.ReLU, "forward", forward)
    return lambda x: net(x), change


@mutation(True)
def function_that_a_layer_of_the_package_calls():
    net = nn.Sequential(nn.Linear(4, 4))
    linear = nn.functional.linear

    def change():
        nn.functional.linear = lambda x, *_: x - 1

    change.undo = lambda: setattr(nn.functional, "linear", linear)
    return lambda x: net(x), change


@mutation(True)
def function_of_the_package_by_its_name():
    relu = tenon.relu

    def change():
        tenon.relu = lambda x: x - 1

    change.undo = lambda: setattr(tenon, "relu", relu)
    return lambda x: tenon.relu(x), change


@mutation(True)
def call_of_a_module_class():
    net = net_of()
    return lambda x: net(x), lambda: setattr(type(net), "__call__", lambda self, x: x - 1)


@mutation(True)
def forward_hook_appears():
    net = net_of()
    return lambda x: net(x), lambda: net.register_forward_hook(lambda m, a, r: r * 3)


@mutation(True)
def forward_hook_of_a_layer_appears():
    net = net_of()
    return lambda x: net(x), lambda: net.linear.register_forward_hook(lambda m, a, r: r * 3)


@mutation(True)
def forward_pre_hook_appears():
    net = net_of()
    return lambda x: net(x), lambda: net.register_forward_pre_hook(lambda m, a: (a[0] * 3,))


@mutation(True)
def forward_hook_goes():
    net = net_of()
    handle = net.register_forward_hook(lambda m, a, r: r * 3)
    return lambda x: net(x), handle.remove


@mutation(True)
def state_of_a_hook():
    net, options = net_of(), {"scale": 2.0}
    net.register_forward_hook(lambda m, a, r: r * options["scale"])
    return lambda x: net(x), lambda: options.update(scale=7.0)


@mutation(True)
def training_is_switched():
    net = nn.Sequential(nn.BatchNorm1d(4))
    net.eval()

    def function(x):
        with tenon.no_grad():
            return net(x)

    return function, lambda: (net.train(), setattr(net[0], "momentum", 0.0))


@mutation(True)
def buffer_is_registered():
    class Buffered(nn.Module):
        def forward(self, x):
            return x * self.scale if hasattr(self, "scale") else x

    net = Buffered()
    return lambda x: net(x), lambda: net.register_buffer("scale", tenon.tensor([3.0]))


@mutation(True)
def parameter_is_replaced():
    net = nn.Linear(4, 4)
    return lambda x: net(x), lambda: setattr(net, "weight", nn.Parameter(rand(4, 4, seed=5)))


@mutation(True)
def data_of_a_parameter_is_replaced():
    net = nn.Linear(4, 4)
    return lambda x: net(x), lambda: setattr(net.weight, "data", rand(4, 4, seed=5))


@mutation(True)
def data_of_a_parameter_gets_another_shape():
    net = nn.Linear(4, 4, bias=False)
    return lambda x: net(x), lambda: setattr(net.weight, "data", rand(3, 4, seed=5))


@mutation(True)
def dtype_of_a_parameter_changes():
    scale = nn.Parameter(tenon.tensor([2.0, 3.0, 4.0, 5.0]))

    def change():
        scale.data = scale.detach().to(tenon.float64) * 3

    return lambda x: x * scale, change


@mutation(True)
def parameter_is_frozen():
    net = nn.Linear(4, 4)

    def function(x):
        y = net(x)
        return y * 2 if y.requires_grad else y

    return function, lambda: net.requires_grad_(False)


@mutation(True)
def layer_is_appended():
    net = nn.Sequential(nn.Linear(4, 4))
    return lambda x: net(x), lambda: net.append(nn.ReLU())


@mutation(True)
def layer_is_replaced():
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    return lambda x: net(x), lambda: net.__setitem__(1, nn.Tanh())


@mutation(True)
def setting_of_a_layer():
    net = nn.Sequential(nn.LeakyReLU(0.1))
    return lambda x: net(x), lambda: net[0].settings.update(negative_slope=0.9)


@mutation(True)
def parametrisation_by_a_property():
    class Halved(nn.Linear):
        pass

    net = Halved(4, 4)
    other = rand(4, 4, seed=3)

    def change():
        net.__dict__.pop("weight")
        Halved.weight = property(lambda self: other)

    return lambda x: net(x), change


@mutation(True)
def weight_norm_appears():
    net = nn.Linear(4, 4)

    def change():
        nn.utils.weight_norm(net)
        for parameter in net.parameters():
            if parameter.numel() == 4:
                parameter.data = parameter.detach() * 3

    return lambda x: net(x), change


@mutation(True)
def tensor_of_a_distribution():
    normal = tenon.distributions.Normal(
        tenon.tensor([0.0]), tenon.tensor([1.0]), validate_args=False
    )
    return lambda x: normal.log_prob(x), lambda: setattr(normal, "loc", tenon.tensor([5.0]))


@mutation(True)
def learning_rate():
    weight = nn.Parameter(tenon.ones(4))
    step = optim.SGD([weight], lr=0.1)

    def function(x):
        with tenon.no_grad():
            weight.fill_(1.0)
        step.zero_grad()
        (weight * x.sum(0)).sum().backward()
        step.step()
        return weight.detach().clone()

    return function, lambda: step.param_groups[0].update(lr=0.7)


@mutation(True)
def options_of_an_optimizer():
    weight = nn.Parameter(tenon.ones(4))
    step = optim.SGD([weight], lr=0.1, weight_decay=0.1)

    def function(x):
        with tenon.no_grad():
            weight.fill_(1.0)
        step.zero_grad()
        (weight * x.sum(0)).sum().backward()
        step.step()
        return weight.detach().clone()

    return function, lambda: setattr(step, "param_groups", [{**step.param_groups[0], "lr": 0.5}])


# -- functions with gradients of their own, operators, settings ----------------------------------


@mutation(True)
def backward_of_a_function_is_replaced():
    class Twice(tenon.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    weight = nn.Parameter(tenon.ones(4))

    def function(x):
        weight.grad = None
        (Twice.apply(weight) * x).sum().backward()
        return weight.grad.clone()

    return function, lambda: setattr(Twice, "backward", staticmethod(lambda ctx, grad: grad * 9))


@mutation(True)
def forward_of_a_function_is_replaced():
    class Twice(tenon.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    return lambda x: Twice.apply(x), lambda: setattr(
        Twice, "forward", staticmethod(lambda ctx, x: x * 9)
    )


@mutation(True)
def default_dtype_changes():
    change = lambda: tenon.set_default_dtype("float64")
    change.undo = lambda: tenon.set_default_dtype("float32")
    return lambda x: tenon.ones(3).sum() / 3, change


@mutation(True)
def gradients_of_the_caller():
    weight = nn.Parameter(tenon.ones(4))

    def function(x):
        y = weight * 2
        return y + 5 if y.requires_grad else y

    guard = tenon.no_grad()
    change = lambda: guard.__enter__()
    change.undo = lambda: guard.__exit__(None, None, None)
    return function, change


@mutation(True)
def autocast_of_the_caller():
    region = tenon.amp.autocast()
    change = lambda: region.__enter__()
    change.undo = lambda: region.__exit__(None, None, None)
    return lambda x: x @ x.T, change


def body(scale):
    return lambda x: x * scale


@mutation(True)
def operator_of_others_is_defined_anew():
    tenon.op("awkward::composed(Tensor x) -> Tensor")(body(2.0))
    call = tenon.ops.awkward.composed
    return lambda x: call(x), lambda: tenon.op("awkward::composed(Tensor x) -> Tensor")(body(7.0))


@mutation(True)
def operator_by_its_name_is_defined_anew():
    tenon.op("awkward::named(Tensor x) -> Tensor")(body(2.0))
    return (
        lambda x: tenon.ops.awkward.named(x),
        lambda: tenon.op("awkward::named(Tensor x) -> Tensor")(body(7.0)),
    )


@mutation(True)
def operator_of_its_own_is_defined_anew():
    def define(scale):
        made = tenon.op("awkward::own(Tensor x) -> Tensor")(body(scale))
        made.shape(lambda x: x.shape)
        return made

    call = define(2.0)
    return lambda x: call(x), lambda: define(7.0)


@mutation(True)
def operator_gets_another_shape_rule():
    def define(rows):
        made = tenon.op("awkward::shaped(Tensor x) -> Tensor")(lambda x: x[:rows] * 2)
        made.shape(lambda x: (rows, x.shape[1]))
        return made

    call = define(2)
    return lambda x: call(x) + 1, lambda: define(1)


@mutation(True)
def operator_gets_another_gradient():
    made = tenon.op("awkward::graded(Tensor x) -> Tensor")(body(2.0))
    made.shape(lambda x: x.shape)
    made.grad(lambda dout: dout * 2)
    weight = nn.Parameter(tenon.ones(4))

    def function(x):
        weight.grad = None
        (made(weight) * x).sum().backward()
        return weight.grad.clone()

    return function, lambda: made.grad(lambda dout: dout * 9)


@mutation(True)
def state_of_the_body_of_an_operator():
    options = {"scale": 2.0}
    tenon.op("awkward::stateful(Tensor x) -> Tensor")(lambda x: x * options["scale"])
    return lambda x: tenon.ops.awkward.stateful(x), lambda: options.update(scale=7.0)


@mutation(True)
def state_of_a_shape_rule():
    options = {"rows": 2}
    made = tenon.op("awkward::ruled(Tensor x) -> Tensor")(lambda x: x[: options["rows"]] * 2)
    made.shape(lambda x: (options["rows"], x.shape[1]))
    return lambda x: made(x) + 1, lambda: options.update(rows=1)


@mutation(True)
def state_of_the_gradient_of_an_operator():
    options = {"scale": 2.0}
    made = tenon.op("awkward::stateful_gradient(Tensor x) -> Tensor")(body(2.0))
    made.shape(lambda x: x.shape)
    made.grad(lambda dout: dout * options["scale"])
    weight = nn.Parameter(tenon.ones(4))

    def function(x):
        weight.grad = None
        (made(weight) * x).sum().backward()
        return weight.grad.clone()

    return function, lambda: options.update(scale=7.0)


@mutation(True)
def operator_gets_a_kernel():
    made = tenon.op("awkward::kernelled(Tensor x) -> Tensor")(body(2.0))
    made.shape(lambda x: x.shape)
    return lambda x: made(x), lambda: made.kernel("cpu")(lambda x: x.numpy() * 7)


@mutation(True)
def operator_of_others_gets_a_shape_rule():
    made = tenon.op("awkward::promoted(Tensor x) -> Tensor")(body(2.0))

    def change():
        made.shape(lambda x: x.shape)
        made.kernel("cpu")(lambda x: x.numpy() * 7)

    return lambda x: made(x), change


@mutation(True)
def kernel_of_another_operator():
    handles = []

    def change():
        handles.append(tenon.kernel("tenon::erfinv", "cpu")(lambda x: x.numpy() * 7))

    change.undo = lambda: handles[0].remove()
    return lambda x: tenon.erfinv(x * 0.1), change


OPERATOR_FILE = """
namespace: awkward_file
ops:
- op: scaled
  doc: Scaled.
  sig: (Tensor x) -> Tensor
  kind: composite
  decompose: "multiply(x, {scale})"
"""


@mutation(True)
def operator_file_is_loaded_again():
    path = pathlib.Path(tempfile.mkdtemp()) / "awkward_file.yaml"

    def load(scale):
        path.write_text(OPERATOR_FILE.format(scale=scale))
        tenon.ops.load(path)

    load(2.0)
    return lambda x: tenon.ops.awkward_file.scaled(x), lambda: load(7.0)
