# SPDX-License-Identifier: Apache-2.0
"""Importing, plugins, devices, memory, random state, fallback."""

import os
import subprocess
import sys
import textwrap

import pytest
import tenon


def run(code, **environment):
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_import_is_lean():
    loaded = run("""
        import sys, tenon
        print(sorted({name.partition('.')[0] for name in sys.modules} & {'numpy', 'json', 'typing', 'inspect'}))
        print(open('/proc/self/maps').read().count('plugins/libtenon_'))
    """)
    assert loaded.split("\n") == ["[]", "0"]  # nor has any plugin been loaded


def test_every_module_imports_without_numpy():
    run("""
        import pkgutil, sys
        sys.modules["numpy"] = None  # importing it fails
        import tenon

        for module in pkgutil.walk_packages(tenon.__path__, "tenon."):
            if module.name.endswith("__main__"):
                continue
            if module.name == "tenon.compat.einops":  # which is einops' and needs it
                continue
            __import__(module.name)

        try:
            tenon.text.StringTensor(["a"])
        except ImportError as error:
            assert "pip install numpy" in str(error), error
        else:
            raise AssertionError("NumPy was imported")
    """)


def test_import_survives_broken_plugins(tmp_path):
    tmp_path.chmod(0o755)
    broken = tmp_path / "libtenon_broken.so"
    broken.write_bytes(b"not a library")
    broken.chmod(0o644)
    output = run(
        """
        import tenon
        print((tenon.ones(2) + 1).tolist())
        """,
        TENON_PLUGIN_PATH=str(tmp_path),
    )
    assert output == "[2.0, 2.0]"


def test_threads_may_come_first_together():
    output = run("""
        import threading, tenon
        results = []
        threads = [threading.Thread(target=lambda: results.append((tenon.ones(2) + 1).tolist()))
                   for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(results == [[2.0, 2.0]] * 8)
    """)
    assert output == "True"


def test_entry_points_are_read_as_metadata(tmp_path):
    (tmp_path / "acme" / "plugins").mkdir(parents=True)
    (tmp_path / "acme" / "__init__.py").write_text("raise RuntimeError('must not be imported')")
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(
        "[console_scripts]\nx = y:z\n\n[tenon.plugins]\nacme = acme:plugins\n"
    )
    output = run(
        """
        from tenon.host.entry_points import plugin_folders
        print(plugin_folders()[0])
        import tenon
        tenon.ones(1)
        """,
        PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
    )
    assert output == str(tmp_path / "acme" / "plugins")


def test_plugins_are_described(capsys):
    names = {entry["name"] for entry in tenon.plugins.list()}
    assert {"cpu", "standard_ops"} <= names
    tenon.plugins.doctor()
    assert "cpu" in capsys.readouterr().out
    with pytest.raises(Exception, match="no-such-plugin"):
        tenon.load_plugin("/no-such-plugin.so")
    assert os.path.isdir(tenon.sdk_path())


def test_explain():
    report = tenon.explain("add", "cpu")
    assert "cpu" in str(report) and str(tenon.explain(tenon.add)) == str(report)
    with pytest.raises(ValueError, match="there is no operator named 'nonsense'"):
        tenon.explain("nonsense")


def test_devices():
    properties = tenon.device_properties("cpu")
    assert properties["host_memory"] and properties["name"]
    tenon.synchronize()
    tenon.synchronize("cpu:0")


def test_memory():
    x = tenon.zeros(100_000)
    assert tenon.memory.stats("cpu") and tenon.memory.snapshot()
    del x
    assert tenon.memory.trim() >= 0
    tenon.memory.reset_peak()


def test_random_state():
    tenon.manual_seed(7)
    state = tenon.random.get_state()
    first = tenon.uniform((4,)).tolist()
    tenon.random.set_state(state)
    assert tenon.uniform((4,)).tolist() == first
    tenon.manual_seed(7)
    assert tenon.uniform((4,)).tolist() == first
    tenon.manual_seed(8)
    assert tenon.uniform((4,)).tolist() != first


def test_fallback_policy_and_report():
    with tenon.fallback("deny"):
        with pytest.raises((ValueError, RuntimeError)):
            tenon.fallback("nonsense")
    tenon.fallback_report(reset=True)
    tenon.ones(3) + 1
    report = tenon.fallback_report()
    assert "add" in str(report) and "native" in str(report)
    assert any(row["op"].endswith("add") and row["native"] >= 1 for row in report)
    assert len(tenon.fallback_report("nowhere")) == 0


def test_the_report_keeps_what_ran_before_a_plugin_came():
    x = tenon.tensor([1.0, 2.0])
    tenon.fallback_report(reset=True)
    tenon.cosh(x)
    tenon.op("system::came_later(Tensor x) -> Tensor")(
        lambda x: x
    )  # a plugin: every choice is made anew
    tenon.cosh(x)
    assert [row["native"] for row in tenon.fallback_report("cpu") if row["op"] == "cosh"] == [2]


def test_threads_setting():
    before = tenon.get_num_threads()
    tenon.set_num_threads(1)
    assert tenon.get_num_threads() == 1
    tenon.set_num_threads(before)
    with pytest.raises(ValueError, match="expected at least 1"):
        tenon.set_num_threads(0)


@pytest.mark.parametrize("name", ["checkpoint", "cpp_extension", "dlpack"])
def test_modules_of_utils_are_attributes(name):
    """`import tenon` is enough, as the tables of docs/from_pytorch.md have them."""
    assert run(f"import tenon; print(tenon.utils.{name}.__name__)") == f"tenon.utils.{name}"


def test_seeds_are_whole_numbers_of_which_64_bits_count():
    for seed in (-1, 2**64 + 5, True):
        tenon.manual_seed(seed)
        assert tenon.random.initial_seed() == seed % 2**64
        assert tenon.Generator(seed=seed).initial_seed() == seed % 2**64
    for wrong in (1.5, "1", None):
        with pytest.raises(TypeError, match=r"manual_seed\(\): expected a whole number, got"):
            tenon.manual_seed(wrong)
    with pytest.raises(ValueError, match=r"a seed and a position from get_state\(\), got -1 and 0"):
        tenon.random.set_state((-1, 0))
