# SPDX-License-Identifier: Apache-2.0
"""The machine that holds a namespace against its library finds the faults that are put in, and where PyTorch is installed
a part of tenon.compat.torch is held against it."""

import inspect
from typing import Any

import pytest

from tests.fuzz.peers.compat.signature_calls import Difference, check, forms


def theirs(x, y=2, *, scale=1.0):
    """A library's function."""
    if not isinstance(scale, float):
        raise TypeError("scale must be a number")
    return (x + y) * scale


class Numbers:
    """A library of one function of numbers, and what a namespace makes of it."""

    name = "library"
    differences = ()

    def __init__(self, ours):
        self._ours = ours

    def functions(self):
        return ["add"]

    def theirs(self, function):
        return theirs

    def ours(self, function):
        return self._ours

    def signatures(self, function):
        return [inspect.signature(theirs)]

    def samples(self, function):
        yield (1,), {"y": 5, "scale": 3.0}

    def alternatives(self, function, parameter, arguments):
        return (7,) if parameter.name == "y" else (0.5,)

    def fresh(self, value):
        return value

    recording = to_ours = fresh
    describe = staticmethod(repr)

    def difference(self, function, ours, our_arguments, theirs, their_arguments):
        return None if ours == theirs else f"{ours}, not {theirs}"


def found(ours, differences=()):
    library = Numbers(ours)
    library.differences = differences
    return check(library)


def test_a_function_that_is_the_same():
    report = found(theirs)
    assert not report.differences() and report.total()["same"] == sum(report.total().values()) > 10


def test_forms_of_one_sample():
    library = Numbers(theirs)
    arguments = {"x": 1, "y": 5, "scale": 3.0}
    calls = list(forms(library, "add", inspect.signature(theirs), arguments))
    made = {(call.form, call.parameter, call.args, tuple(call.kwargs.items())) for call in calls}
    assert ("position", "", (1, 5), (("scale", 3.0),)) in made
    assert ("keyword", "", (), (("x", 1), ("y", 5), ("scale", 3.0))) in made
    assert ("default", "", (), (("x", 1),)) in made
    assert ("default", "y", (), (("x", 1), ("scale", 3.0))) in made
    assert ("other", "y", (1, 7), ()) in made
    assert ("other", "scale", (), (("x", 1), ("scale", 0.5))) in made
    assert any(call.form == "nonsense" and call.parameter == "scale" for call in calls)


FAULTS: dict[str, tuple[Any, str]] = {
    "another default": (lambda x, y=3, *, scale=1.0: theirs(x, y, scale=scale), "[default"),
    "another place": (lambda x, scale=1.0, y=2: theirs(x, y, scale=float(scale)), "[position"),
    "a parameter that is ignored": (lambda x, y=2, *, scale=1.0: x + y, "[keyword"),
    "nonsense that is accepted": (
        lambda x, y=2, *, scale=1.0: theirs(x, y, scale=scale if scale != "nonsense" else 1.0),
        "accepted",
    ),
    "any keyword": (lambda x, y=2, *, scale=1.0, **rest: theirs(x, y, scale=scale), "accepted"),
    "a missing parameter": (lambda x, y=2: theirs(x, y), "unexpected keyword"),
}


@pytest.mark.parametrize("ours, text", FAULTS.values(), ids=FAULTS)
def test_faults_that_are_put_in(ours, text, capsys):
    report = found(ours)
    report.show(Numbers(ours), ["different"])
    assert report.differences() and text in capsys.readouterr().out


def test_an_error_that_says_what_is_expected_is_a_refusal():
    def ours(x, y=2, *, scale=1.0):
        if scale != 1.0:
            raise NotImplementedError(f"add(): expected scale=1.0, got {scale!r}")
        return theirs(x, y)

    report = found(ours)
    assert not report.differences() and report.total()["refused"]


def test_a_difference_on_purpose_needs_a_row_that_speaks_of_it():
    def ours(x, y=3, *, scale=1.0):
        return theirs(x, y, scale=scale)

    row = Difference("add", "three is nicer than two", form="default|other|nonsense")
    assert found(ours).differences()
    report = found(ours, [row])
    assert not report.differences() and report.total()["on purpose"]
    other = Difference("subtract", "not this function")
    assert found(ours, [other]).differences()


PART = """chunk sum max histogram flip tile sign diag arange zeros norm unique searchsorted bincount gather
nn.functional.relu nn.functional.mse_loss nn.functional.pad nn.functional.prelu linalg.qr linalg.svd linalg.lstsq fft.fft
special.gammainc masked.sum signal.windows.hann""".split()


def test_a_part_of_the_namespace_beside_pytorch():
    pytest.importorskip("torch", reason="the comparison asks PyTorch")
    pytest.importorskip("expecttest", reason="PyTorch's tables of samples import it")
    from tests.fuzz.peers.compat.of_torch import LIBRARY

    report = check(LIBRARY, PART, minutes=1.0, samples=1)
    assert not report.differences(), report.differences()[:5]
    assert not report.unasked and report.total()["same"] > 500
