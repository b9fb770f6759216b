# SPDX-License-Identifier: Apache-2.0
"""Changes of what a function means that come after it was compiled: of classes, code, containers, modules of layers,
operators and settings. Each row makes a function of one tensor and the change."""

import abc
import dataclasses
import enum
import operator
import types

from tenon import nn

MUTATIONS = {}  # name: (a factory of a function and its change, whether it is a program before)
FACTOR = 2.0


def mutation(compiles):
    def register(factory):
        MUTATIONS[factory.__name__] = factory, compiles
        return factory

    return register


class Scaled:
    offset = 0.0

    def __init__(self, scale=2.0):
        self.scale = scale

    def __call__(self, x):
        return x * self.scale + self.offset

    def method(self, x):
        return x * self.scale


class Negated(Scaled):
    def __call__(self, x):
        return -x

    def method(self, x):
        return x - 5


class LinearTimes100(nn.Linear):
    def forward(self, x):
        return super().forward(x) * 100


# -- classes -------------------------------------------------------------------------------------


@mutation(True)
def class_of_an_object_is_assigned():
    box = Scaled()
    return lambda x: box(x), lambda: setattr(box, "__class__", Negated)


@mutation(True)
def class_of_an_object_whose_method_is_called():
    box = Scaled()
    return lambda x: box.method(x), lambda: setattr(box, "__class__", Negated)


@mutation(True)
def class_of_an_object_in_a_list():
    boxes = [Scaled(), Scaled(3.0)]
    return lambda x: boxes[1](x), lambda: setattr(boxes[1], "__class__", Negated)


@mutation(True)
def class_of_an_object_in_an_object():
    tree = types.SimpleNamespace(inner=types.SimpleNamespace(box=Scaled()))
    return lambda x: tree.inner.box(x), lambda: setattr(tree.inner.box, "__class__", Negated)


@mutation(True)
def class_of_a_layer_is_assigned():
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    return lambda x: net(x), lambda: setattr(net[0], "__class__", LinearTimes100)


@mutation(True)
def class_of_the_model_itself():
    net = nn.Linear(4, 4)
    return net, lambda: setattr(net, "__class__", LinearTimes100)


@mutation(True)
def class_of_a_layer_in_a_list_of_python():
    class Net(nn.Module):
        def __init__(self):
            self.parts = [nn.Linear(4, 4)]

        def forward(self, x):
            return self.parts[0](x)

    net = Net()
    return lambda x: net(x), lambda: setattr(net.parts[0], "__class__", LinearTimes100)


@mutation(True)
def bases_of_a_class_are_assigned():
    class One:
        def run(self, x):
            return x + 1

    class Two:
        def run(self, x):
            return x * 5

    class Box(One):
        pass

    box = Box()
    return lambda x: box.run(x), lambda: setattr(Box, "__bases__", (Two,))


@mutation(True)
def method_of_a_base_is_replaced_that_super_calls():
    class Base:
        def run(self, x):
            return x + 1

    class Box(Base):
        def run(self, x):
            return super().run(x) * 2

    box = Box()
    return lambda x: box.run(x), lambda: setattr(Base, "run", lambda self, x: x - 7)


@mutation(True)
def attribute_of_a_class_by_its_name():
    class Options:
        scale = 2.0

    return lambda x: x * Options.scale, lambda: setattr(Options, "scale", 7.0)


@mutation(True)
def list_of_a_class_by_its_name():
    class Options:
        scales = [2.0]

    return lambda x: x * sum(Options.scales), lambda: Options.scales.append(7.0)


@mutation(True)
def static_method_of_a_class_by_its_name():
    class Options:
        @staticmethod
        def run(x):
            return x * 2

    change = lambda: setattr(Options, "run", staticmethod(lambda x: x - 1))
    return lambda x: Options.run(x), change


@mutation(True)
def class_method_of_a_class_by_its_name():
    class Options:
        scale = 2.0

        @classmethod
        def run(cls, x):
            return x * cls.scale

    return lambda x: Options.run(x), lambda: setattr(Options, "scale", 7.0)


@mutation(True)
def constructor_of_a_class_is_replaced():
    class Box:
        def __init__(self):
            self.scale = 2.0

    def init(self):
        self.scale = 9.0

    return lambda x: x * Box().scale, lambda: setattr(Box, "__init__", init)


@mutation(True)
def new_of_a_class_is_replaced():
    class Box:
        def __new__(cls):
            return 2.0

    return lambda x: x * Box(), lambda: setattr(Box, "__new__", staticmethod(lambda cls: 6.0))


@mutation(True)
def attribute_of_a_metaclass():
    class Meta(type):
        scale = 2.0

    class Box(metaclass=Meta):
        pass

    return lambda x: x * Box.scale, lambda: setattr(Meta, "scale", 5.0)


@mutation(True)
def call_of_a_metaclass():
    class Meta(type):
        def __call__(cls):
            return 2.0

    class Box(metaclass=Meta):
        pass

    return lambda x: x * Box(), lambda: setattr(Meta, "__call__", lambda cls: 6.0)


@mutation(True)
def metaclass_is_assigned():
    class Meta(type):
        scale = 2.0

    class Other(type):
        scale = 8.0

    class Box(metaclass=Meta):
        pass

    return lambda x: x * Box.scale, lambda: setattr(Box, "__class__", Other)


@mutation(True)
def class_getitem_is_replaced():
    class Box:
        def __class_getitem__(cls, key):
            return 2.0

    change = lambda: setattr(Box, "__class_getitem__", classmethod(lambda cls, key: 6.0))
    return lambda x: x * Box[0], change


@mutation(True)
def class_is_registered_as_another():
    class Shape(abc.ABC):  # noqa: B024
        pass

    class Box:
        pass

    box = Box()
    return lambda x: x * 2 if isinstance(box, Shape) else x - 1, lambda: Shape.register(Box)


@mutation(True)
def instancecheck_of_a_metaclass():
    class Meta(type):
        def __instancecheck__(cls, it):
            return False

    class Shape(metaclass=Meta):
        pass

    change = lambda: setattr(Meta, "__instancecheck__", lambda cls, it: True)
    return lambda x: x * 2 if isinstance(3, Shape) else x - 1, change


@mutation(True)
def property_is_replaced():
    class Box:
        scale = property(lambda self: 2.0)

    box = Box()
    return lambda x: x * box.scale, lambda: setattr(Box, "scale", property(lambda self: 7.0))


@mutation(True)
def property_hides_an_attribute_of_the_object():
    class Box:
        pass

    box = Box()
    box.scale = 2.0
    return lambda x: x * box.scale, lambda: setattr(Box, "scale", property(lambda self: 7.0))


@mutation(True)
def getattr_of_a_class_appears():
    class Box:
        pass

    box = Box()
    return (
        lambda x: x * getattr(box, "scale", 2.0),
        lambda: setattr(Box, "__getattr__", lambda self, name: 7.0),
    )


@mutation(True)
def getattribute_of_a_class_appears():
    box = type("Box", (Scaled,), {})(2.0)

    def read(self, name):
        return 7.0 if name == "scale" else object.__getattribute__(self, name)

    return lambda x: x * box.scale, lambda: setattr(type(box), "__getattribute__", read)


@mutation(True)
def descriptor_gets_another_class():
    class One:
        def __get__(self, instance, owner):
            return 2.0

    class Two:
        def __get__(self, instance, owner):
            return 6.0

    class Box:
        scale = One()

    box = Box()
    return lambda x: x * box.scale, lambda: setattr(vars(Box)["scale"], "__class__", Two)


@mutation(True)
def length_of_a_class_appears():
    class Box:
        pass

    box = Box()
    return lambda x: x * 2 if box else x - 1, lambda: setattr(Box, "__len__", lambda self: 0)


@mutation(True)
def equality_of_a_class_is_replaced():
    class Box:
        def __eq__(self, other):
            return True

        __hash__ = None

    box = Box()
    change = lambda: setattr(Box, "__eq__", lambda self, other: False)
    return lambda x: x * 2 if box == 3 else x - 1, change


@mutation(True)
def text_of_an_object():
    class Box:
        def __str__(self):
            return str(self.text)

    box = Box()
    box.text = "2"
    return lambda x: x * float(str(box)), lambda: setattr(box, "text", "7")


@mutation(True)
def slot_of_a_base():
    class Base:
        __slots__ = ("scale",)

    class Box(Base):
        __slots__ = ()

    box = Box()
    box.scale = 2.0
    return lambda x: x * box.scale, lambda: setattr(box, "scale", 7.0)


@mutation(True)
def whole_dictionary_of_an_object():
    box = Scaled()
    return lambda x: x * box.scale, lambda: setattr(box, "__dict__", {"scale": 7.0})


@mutation(True)
def dictionary_of_an_object_by_a_computed_name():
    box = Scaled()
    names = ["sca", "le"]
    return lambda x: x * box.__dict__["".join(names)], lambda: setattr(box, "scale", 7.0)


@mutation(True)
def attribute_by_a_computed_name():
    box = types.SimpleNamespace(w1=2.0, w2=3.0)
    return lambda x: x * sum(getattr(box, f"w{i}") for i in (1, 2)), lambda: setattr(box, "w2", 9.0)


@mutation(True)
def attribute_that_only_a_helper_names():
    box = Scaled()

    def helper(it, x):
        return x * it.scale

    return lambda x: helper(box, x), lambda: setattr(box, "scale", 7.0)


@mutation(True)
def attribute_by_an_attrgetter():
    box, read = Scaled(), operator.attrgetter("scale")
    return lambda x: x * read(box), lambda: setattr(box, "scale", 7.0)


@mutation(True)
def method_by_a_methodcaller():
    class Box:
        def run(self):
            return 2.0

    box, run = Box(), operator.methodcaller("run")
    return lambda x: x * run(box), lambda: setattr(Box, "run", lambda self: 6.0)


@mutation(True)
def attribute_by_an_attrgetter_that_is_made_inside():
    box, names = Scaled(), ["sca" + "le"]
    return lambda x: x * operator.attrgetter(names[0])(box), lambda: setattr(box, "scale", 7.0)


@mutation(True)
def attribute_by_another_name_of_getattr():
    box, read, names = Scaled(), getattr, ["sca" + "le"]
    return lambda x: x * read(box, names[0]), lambda: setattr(box, "scale", 7.0)


@mutation(True)
def attribute_by_getattribute():
    box, names = Scaled(), ["sca" + "le"]
    read = lambda: object.__getattribute__(box, names[0])
    return lambda x: x * read(), lambda: setattr(box, "scale", 7.0)


@mutation(True)
def attribute_in_a_format():
    box = Scaled()
    return lambda x: x * float(f"{box.scale}"), lambda: setattr(box, "scale", 7.0)


@mutation(True)
def dictionary_that_is_another_object_s():
    class Proxy:
        __slots__ = ("it",)
        __dict__ = property(lambda self: self.it.__dict__)

        def __getattr__(self, name):
            return getattr(self.it, name)

    proxy = Proxy()
    proxy.it = Scaled()
    return lambda x: x * proxy.scale, lambda: setattr(proxy.it, "scale", 7.0)


@mutation(True)
def fields_of_a_dataclass_as_a_dict():
    @dataclasses.dataclass
    class Options:
        scale: float = 2.0

    options = Options()
    return lambda x: x * dataclasses.asdict(options)["scale"], lambda: setattr(
        options, "scale", 7.0
    )


@mutation(True)
def member_of_an_enumeration():
    class Mode(enum.Enum):
        FAST = 2.0

    return lambda x: x * Mode.FAST.value, lambda: setattr(Mode.FAST, "_value_", 7.0)


@mutation(True)
def attribute_of_a_number():
    class Scale(float):
        pass

    scale = Scale(2.0)
    scale.extra = 1.0
    return lambda x: x * float(scale) + scale.extra, lambda: setattr(scale, "extra", 5.0)
