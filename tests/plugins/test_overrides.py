# SPDX-License-Identifier: Apache-2.0
"""Kernels of others' operators on others' devices: held back until the user agrees."""

import json
import os
import textwrap

import pytest
import tenon
from plugin_support import FAULTY_PLUGINS, command, python

FASTCPU = os.path.join(FAULTY_PLUGINS, "libtenon_fastcpu.so")
CLUMSY = os.path.join(FAULTY_PLUGINS, "libtenon_clumsy.so")

pytestmark = pytest.mark.skipif(not os.path.exists(FASTCPU), reason="TENON_BUILD_DIR is not set")

PRELUDE = f"""
import tenon
FASTCPU = {FASTCPU!r}
def relu(): return tenon.relu(tenon.tensor([1.0, -1.0])).tolist()
"""


def run(code, **environment):
    """(what the code prints, what is logged)"""
    status, out, err = python("-c", PRELUDE + textwrap.dedent(code), **environment)
    assert status == 0, err
    return out.strip(), err


def test_without_consent_they_are_held_back_and_it_is_logged_once():
    out, log = run("""
        tenon.load_plugin(FASTCPU)
        print(relu(), relu())
        tenon.load_plugin(FASTCPU)  # is loaded already
    """)
    assert out == "[1.0, 0.0] [1.0, 0.0]"
    assert log.count("held back") == 1
    assert f"plugin fastcpu 1.0.0 ({os.path.realpath(FASTCPU)}) brings 3 kernel(s)" in log
    assert "tenon.plugins.allow_overrides('fastcpu') or TENON_OVERRIDES=fastcpu" in log


@pytest.mark.parametrize("names", ["fastcpu", "other,fastcpu", "*"])
def test_consent_by_the_environment(names):
    out, log = run("tenon.load_plugin(FASTCPU)\nprint(relu())", TENON_OVERRIDES=names)
    assert out == "[42.0, 42.0]" and "held back" not in log
    out, _ = run(
        "tenon.load_plugin(FASTCPU); tenon.plugins.forbid_overrides('fastcpu'); print(relu())",
        TENON_OVERRIDES=names,
    )
    assert out == "[1.0, 0.0]"


def test_consent_to_another_is_none():
    out, log = run("tenon.load_plugin(FASTCPU); print(relu())", TENON_OVERRIDES="fastcp,fast")
    assert out == "[1.0, 0.0]" and "held back" in log


def test_consent_with_load():
    out, log = run("tenon.plugins.load(FASTCPU, overrides=True); print(relu())")
    assert out == "[42.0, 42.0]" and "held back" not in log
    out, _ = run(
        "tenon.plugins.load(FASTCPU, overrides=False); print(relu())", TENON_OVERRIDES="fastcpu"
    )
    assert out == "[1.0, 0.0]"


def test_consent_at_run_time_refreshes_what_was_chosen():
    out, _ = run("""
        p = tenon.plugins
        p.allow_overrides("fastcpu"); p.forbid_overrides("fastcpu")  # before it is there
        p.load(FASTCPU)
        results = [relu()]
        for change in (p.allow_overrides, p.forbid_overrides, p.allow_overrides):
            change("fastcpu")
            results.append(relu())
        p.unload("fastcpu")
        results.append(relu())
        p.load(FASTCPU)  # consent is by name, and stays
        results.append(relu())
        print([first for first, _ in results])
        p.forbid_overrides("fastcpu"); p.allow_overrides("*")
        print(relu())  # a name goes before *
    """)
    assert out == "[1.0, 42.0, 1.0, 42.0, 1.0, 42.0]\n[1.0, 0.0]"


def test_score_decides_among_those_allowed_and_can_run_is_asked():
    out, _ = run(
        """
        tenon.load_plugin(FASTCPU)
        print(tenon.exp(tenon.zeros(2)).tolist(), tenon.exp(tenon.zeros(5)).tolist())
        print(tenon.sin(tenon.zeros(2)).tolist())  # a score below the cpu's own
    """,
        TENON_OVERRIDES="fastcpu",
    )
    assert out == "[42.0, 42.0] [1.0, 1.0, 1.0, 1.0, 1.0]\n[0.0, 0.0]"


def test_explain_shows_every_candidate_and_why_the_winner_won():
    out, _ = run("""
        import json
        tenon.load_plugin(FASTCPU)
        reports = [tenon.explain("relu", "cpu"), tenon.explain("exp", "cpu")]
        tenon.plugins.allow_overrides("fastcpu")
        reports += [tenon.explain(op, "cpu") for op in ("relu", "exp", "sin")]
        print(json.dumps(reports))
    """)
    held, _, relu, exp, sin = json.loads(out)
    cpu, fast = held["kernels"]
    assert (cpu["plugin"], cpu["state"], cpu["override"]) == ("cpu", "runs", False)
    assert (fast["plugin"], fast["score"], fast["held_back"]) == ("fastcpu", 1000, True)
    assert fast["state"] == (
        "held back: needs consent; tenon.plugins.allow_overrides('fastcpu') or TENON_OVERRIDES=fastcpu"
    )
    assert held["why"] == "cpu has the only kernel"

    assert [kernel["plugin"] for kernel in relu["kernels"]] == ["fastcpu", "cpu"]
    assert relu["kernels"][0]["state"] == "runs" and relu["kernels"][0]["override"]
    assert relu["kernels"][1]["state"] == "not reached: fastcpu comes before and never declines"
    own = relu["kernels"][1]["score"]
    assert relu["why"] == f"fastcpu is first: its score 1000 is above {own} of cpu"

    assert exp["kernels"][0]["state"] == "asked at every call; runs unless it declines"
    assert exp["kernels"][1]["state"] == "runs if all before decline"
    assert sin["kernels"][0]["plugin"] == "cpu"


def test_the_command_shows_the_state_of_consent():
    code, out, _ = command("plugins", "list", "--plugin", FASTCPU)
    header, row = out.splitlines()[0], next(x for x in out.splitlines() if x.startswith("fastcpu "))
    assert code == 0 and row[header.index("OVERRIDES") :].startswith("3 held back")
    assert "fastcpu: 3 of its kernels held back" in out
    code, out, _ = command("plugins", "list", "--plugin", FASTCPU, TENON_OVERRIDES="fastcpu")
    row = next(line for line in out.splitlines() if line.startswith("fastcpu "))
    assert row[header.index("OVERRIDES") :].startswith("3 allowed") and "held back" not in out
    code, out, _ = command("plugins", "explain", "relu", "--device", "cpu", "--plugin", FASTCPU)
    assert code == 0
    assert "of fastcpu: score 1000, boxed, override" in out
    assert "held back: needs consent; tenon.plugins.allow_overrides('fastcpu')" in out
    code, out, _ = command("plugins", "doctor", FASTCPU)
    assert code == 0 and "warning: 3 of its kernels held back" in out


def test_kernels_of_a_plugins_own_operators_need_no_consent():
    code, out, _ = command("plugins", "list", "--json", "--plugin", CLUMSY)
    entry = next(entry for entry in json.loads(out) if entry["name"] == "clumsy")
    assert code == 0 and (entry["overrides"], entry["held_back"]) == (0, 0)
    own = [entry for entry in json.loads(out) if entry["name"] in ("cpu", "kernel_c", "isolated")]
    assert len(own) == 3 and not any(entry.get("held_back") for entry in own)


@pytest.mark.parametrize("space", ["tenon", "acme"])
def test_claiming_a_namespace_is_no_consent(folder, space):
    with open(FASTCPU, "rb") as file:
        data = file.read()
    note = b'{"kind":"kernels","kernels_for":["cpu"]}'
    claim = note[:-1] + b',"namespaces":["' + space.encode() + b'"]}'
    assert note + bytes(len(claim) - len(note)) in data
    path = os.path.join(folder, "libtenon_fastcpu.so")
    with open(path, "wb") as file:
        file.write(data.replace(note + bytes(len(claim) - len(note)), claim))
    out, log = run(f"tenon.load_plugin({path!r}); print(relu())")
    assert out == "[1.0, 0.0]" and "held back" in log


def test_kernels_of_operators_that_nobody_defines_are_reported():
    code, out, _ = command("plugins", "list", "--plugin", CLUMSY)
    assert code == 0
    assert "clumsy: kernels for operators that no package has defined: clumsy::mistyped" in out
    _, out, _ = command("plugins", "doctor", CLUMSY)
    assert "clumsy::mistyped; load the plugin that defines them, or correct their names" in out


def test_consent_is_to_names():
    for name in ("", "Fast CPU", "fast,cpu"):
        with pytest.raises(
            tenon.NotFoundError, match="expected the name of a plugin, a path"
        ) as error:
            tenon.plugins.allow_overrides(name)
        assert f"got '{name}'" in str(error.value)
    with pytest.raises(ValueError, match="an isolated plugin has kernels for its own device alone"):
        tenon.plugins.load(FASTCPU, isolated=True, overrides=True)
