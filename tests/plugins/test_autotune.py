# SPDX-License-Identifier: Apache-2.0
"""The fastest of several kernels is found, used, remembered and explained."""

import os

import pytest
import tenon
from plugin_support import FAULTY_PLUGINS, python

CONTENDERS = os.path.join(FAULTY_PLUGINS, "libtenon_contenders.so")
FASTCPU = os.path.join(FAULTY_PLUGINS, "libtenon_fastcpu.so")

pytestmark = pytest.mark.skipif(not os.path.exists(CONTENDERS), reason="TENON_BUILD_DIR is not set")

# Plugins of others need consent before autotuning may choose their kernels; "*" gives it without
# choosing optional kernels.
PROGRAM = f"""
import tenon
tenon.load_plugin({CONTENDERS!r})
tenon.plugins.allow_overrides("*")
x = tenon.zeros((1 << 18,))
def who(name):
    return "contenders" if getattr(tenon, name)(x)[0].item() == 42 else "cpu"
"""


@pytest.fixture
def run(tmp_path):
    """Runs PROGRAM and more in a process of its own; choices are kept in tmp_path."""

    def run_more(more, **environment):
        environment = {"TENON_AUTOTUNE_CACHE": str(tmp_path), **environment}
        code, out, err = python("-c", PROGRAM + more, **environment)
        assert code == 0, err
        return out.split(), err

    return run_more


def test_the_fastest_kernel_runs_while_autotuning_is_on(run):
    out, _ = run(
        """
print(who("relu"))
with tenon.autotune():
    print(who("relu"), who("exp"), who("sin"), who("cos"), who("relu"))
print(who("relu"))
tenon.autotune.enable(); print(who("relu"))
tenon.autotune.disable(); print(who("relu"))
"""
    )
    assert out == "cpu contenders cpu cpu cpu contenders cpu contenders cpu".split()


def test_the_report_has_times_and_reasons(run):
    out, _ = run(
        """
import json
with tenon.autotune():
    for name in "relu exp sin cos".split(): who(name)
print(json.dumps(tenon.autotune.report()).replace(" ", "~"))
explained = tenon.explain("relu", "cpu")
print(explained["autotune"][0]["chosen"])
print(explained["kernels"][1]["state"].replace(" ", "~"))
"""
    )
    report = __import__("json").loads(out[0].replace("~", " "))
    relu, exp, sin = (
        next(d for d in report["decisions"] if d["op"] == f"tenon::{name}")
        for name in "relu exp sin".split()
    )
    assert relu["chosen"] == "contenders/1"
    assert set(relu["microseconds"]) == {"cpu", "contenders", "contenders/1"}
    assert relu["microseconds"]["contenders"] > 1000
    assert relu["why"].endswith("of the time of cpu, which runs without autotuning")
    assert relu["call"].startswith("tenon::relu | float32[262144] | ")
    assert "contenders 1.0.0" in relu["versions"]
    assert exp["chosen"] == "cpu"
    assert exp["why"] == "no other kernel takes at most 0.97 of the time of cpu"
    assert sin["failed"] == {"contenders": "out of order"}
    assert not any(d["op"] == "tenon::cos" for d in report["decisions"]), "one kernel accepts it"
    assert out[1] == "contenders/1"
    assert out[2].replace("~", " ") == (
        "optional: runs where tenon.autotune chooses it, or always with "
        "tenon.plugins.allow_overrides('contenders') or TENON_OVERRIDES=contenders"
    )


def test_choices_outlive_the_process(run, tmp_path):
    run("with tenon.autotune(): who('relu')")
    (path,) = tmp_path.glob("cpu*.txt")
    assert path.name.endswith(f"-{tenon.__version__}.txt")
    out, _ = run(
        """
with tenon.autotune(measure=False):
    print(who("relu"), who("exp"))
print(tenon.autotune.report()["decisions"][0]["source"])
tenon.autotune.clear(files=True)
with tenon.autotune(measure=False): print(who("relu"))
"""
    )
    assert out == ["contenders", "cpu", "file", "cpu"]
    assert not path.exists()


@pytest.mark.parametrize(
    "damage", [lambda text: text[:-9] + "\n", lambda text: "nothing\n", lambda text: ""]
)
def test_a_damaged_file_is_ignored_with_a_warning_and_replaced(run, tmp_path, damage):
    run("with tenon.autotune(): who('relu')")
    (path,) = tmp_path.glob("cpu*.txt")
    sound = path.read_text()
    path.write_text(damage(sound))
    out, err = run("with tenon.autotune(): print(who('relu'))")
    assert out == ["contenders"]
    assert f"in {path}, got a damaged file; it is ignored and will be replaced" in err
    assert path.read_text().splitlines()[0] == "tenon autotune 1"
    out, err = run("with tenon.autotune(measure=False): print(who('relu'))")
    assert out == ["contenders"] and "damaged" not in err


def test_another_version_is_measured_again(run, tmp_path):
    run("with tenon.autotune(): who('relu')")
    (path,) = tmp_path.glob("cpu*.txt")
    out, _ = run(
        """
print(tenon.autotune.report()["files"])
with tenon.autotune(measure=False): print(who("relu"))
tenon.plugins.forbid_overrides("*")
with tenon.autotune(measure=False): print(who("relu"))
"""
    )
    assert out[1:] == ["contenders", "cpu"], "the kernels that the choice was made among are gone"


def test_processes_that_measure_at_once_lose_nothing(run, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    programs = [
        f"x = tenon.zeros(({size},))\nwith tenon.autotune(): who('relu')"
        for size in range(200005, 200009)
    ]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, programs))
    (path,) = tmp_path.glob("cpu*.txt")
    lines = path.read_text().splitlines()
    assert [line.split(" |")[1].strip() for line in lines[1:] if "relu" in line] == [
        f"float32[{size}]" for size in range(200005, 200009)
    ]


def test_the_environment_enables_it_on_every_thread(run):
    more = """
from threading import Thread
thread = Thread(target=lambda: print(who("relu")))
thread.start(); thread.join()
with tenon.autotune(measure=False): print(who("exp"))
"""
    assert run(more, TENON_AUTOTUNE="1")[0] == ["contenders", "cpu"]
    assert run("print(who('relu'))", TENON_AUTOTUNE="use")[0] == ["contenders"]
    assert run("print(who('relu'))", TENON_AUTOTUNE="0")[0] == ["cpu"]
    assert run("print(who('relu'))", TENON_AUTOTUNE="use", TENON_AUTOTUNE_CACHE="off")[0] == ["cpu"]


def test_a_wrong_value_of_the_variable_is_an_error():
    code, _, err = python("-c", "import tenon; tenon.zeros(1)", TENON_AUTOTUNE="yes")
    assert "TENON_AUTOTUNE: expected 1, use or 0, got 'yes'" in err


def test_optional_kernels_run_always_once_their_plugin_is_named(run):
    out, _ = run("tenon.plugins.allow_overrides('contenders'); print(who('relu'), who('cos'))")
    assert out == ["contenders", "cpu"]


def test_gradients_and_given_results_are_computed_once():
    x = tenon.tensor([1.0, -2.0], requires_grad=True)
    y = tenon.zeros((2,))
    with tenon.autotune():
        (x * 2).relu().sum().backward()
        y += 1.0
        tenon.add(y, y, out=y)
    assert x.grad.tolist() == [2.0, 0.0]
    assert y.tolist() == [2.0, 2.0]


def test_disable_needs_enable():
    with pytest.raises(RuntimeError, match=r"expected a call of autotune.enable\(\) before it"):
        tenon.autotune.disable()
