# SPDX-License-Identifier: Apache-2.0
"""How packages build, what is refused and why, and how they are found."""

import os
import shutil
import subprocess
import sys

import building
import pytest
import tenon

sys.path.insert(0, os.path.join(building.HERE, "..", "plugins"))
from plugin_support import announce, with_epoch

NVCC = shutil.which("nvcc")


def copy_of(name, folder):
    path = os.path.join(folder, "source")
    shutil.copytree(os.path.join(building.HERE, name), path)
    return path


def edit(path, old, new):
    with open(path) as file:
        text = file.read()
    assert old in text
    with open(path, "w") as file:
        file.write(text.replace(old, new, 1))


def test_a_mistake_in_the_yaml_ends_the_configuration_with_its_line():
    folder = building.folder("mistakes")
    source = copy_of("rival", folder)
    edit(f"{source}/rival.yaml", "decompose: x * x * x", "decompose: x * x * y")
    code, text = building.configure(source, f"{folder}/build")
    assert code != 0
    assert "tenon_add_operators(rival)" in text
    assert "rival.yaml:9: decompose: " in text


@pytest.mark.parametrize(
    "call, text",
    [
        ("rival OPERATORS rival.yaml", "expected VERSION and OPERATORS"),
        ("rival SORCES a.cpp VERSION 1.0 OPERATORS rival.yaml", "unknown arguments: SORCES;a.cpp"),
        ("rival VERSION 1.0 OPERATORS riwal.yaml", "riwal.yaml:1: cannot read this file"),
        (
            "rival VERSION 1.0 OPERATORS rival.yaml CUDA_SOURCES a.cu",
            "CUDA_SOURCES are given, but no operator declares",
        ),
    ],
)
def test_a_mistake_in_the_call_says_what_is_expected(call, text):
    folder = building.folder("calls")
    source = copy_of("rival", folder)
    with open(f"{source}/CMakeLists.txt", "w") as file:
        file.write(
            "cmake_minimum_required(VERSION 3.22)\nproject(rival LANGUAGES CXX)\n"
            f"find_package(Tenon REQUIRED)\ntenon_add_operators({call})\n"
        )
    code, printed = building.configure(source, f"{folder}/build", "-DCMAKE_CUDA_COMPILER=OFF")
    assert code != 0 and text in " ".join(printed.split())


def test_a_missing_function_is_a_link_error_that_names_it():
    folder = building.folder("missing")
    source = copy_of("rival", folder)
    with open(f"{source}/rival.yaml", "a") as file:
        file.write(
            "\n- op: lost\n  doc: It has no kernel.\n  sig: (Tensor x) -> Tensor\n  kind: kernel\n"
            "  shape: same(x)\n  kernels: {cpu: float32}\n"
        )
    code, text = building.configure(source, f"{folder}/build")
    assert code == 0, text
    code, text = building.make(f"{folder}/build")
    assert code != 0 and "undefined reference to `rich::kernels::lost_cpu(" in text
    # The header is included, and the function not defined: the element type is named too.
    with open(f"{source}/lost.cpp", "w") as file:
        file.write("#include <rich/lost_cpu.hpp>\n")
    edit(
        f"{source}/CMakeLists.txt", "OPERATORS rival.yaml", "OPERATORS rival.yaml SOURCES lost.cpp"
    )
    code, text = building.make(f"{folder}/build")
    assert code != 0 and "undefined reference to `void rich::lost_cpu<float>(" in text


def test_kernels_for_gpus_are_left_out_where_there_is_no_compiler():
    folder = building.folder("no_cuda")
    code, text = building.configure(
        os.path.join(building.HERE, "cuda"), folder, "-DCMAKE_CUDA_COMPILER=OFF"
    )
    assert code == 0, text
    assert "no CUDA compiler found; the kernels for cuda are left out" in " ".join(text.split())
    code, text = building.make(folder)
    assert code == 0, text
    assert "[4.0]" in building.python(
        f"import tenon; tenon.plugins.load('{folder}/libtenon_gpu.so')\n"
        "print(tenon.ops.gpu.scale(tenon.tensor([2.0])).tolist())"
    )


@pytest.mark.skipif(not NVCC, reason="nvcc is missing")
def test_kernels_for_gpus_compile_and_link():
    folder = building.build("cuda", "-DCMAKE_CUDA_ARCHITECTURES=90")
    symbols = subprocess.run(
        ["nm", "-C", f"{folder}/libtenon_gpu.so"], capture_output=True, text=True, check=True
    ).stdout
    assert "gpu::kernels::scale_cuda(" in symbols
    # Where there is no such device, the package is loaded all the same.
    assert "[4.0] ['cuda'] 1" in building.python(
        f"import tenon; tenon.plugins.load('{folder}/libtenon_gpu.so')\n"
        "plugin = next(p for p in tenon.plugins.list() if p['name'] == 'gpu')\n"
        "out = tenon.ops.gpu.scale(tenon.tensor([2.0])).tolist()\n"
        "print(out, plugin['kernels_for'], plugin['kernels'])"
    )


def test_two_packages_that_clash_are_told_apart(rich_folder):
    rival = building.build("rival")
    text = building.python(
        "import tenon\n"
        f"tenon.plugins.load('{rich_folder}/libtenon_rich.so')\n"
        f"try: tenon.plugins.load('{rival}/libtenon_rival.so')\n"
        "except Exception as error: print(error)\n"
        "print(tenon.ops.rich.cube(tenon.tensor([2.0])).tolist())"
    )
    for part in ("rich::cube", "rival 3.0.0", "rival.yaml:5", "rich 1.2.0", "rich.yaml:", "[8.0]"):
        assert part in text, text


def test_a_package_without_gradients_can_be_unloaded():
    rival = building.build("rival")
    assert "{'rich'} gone" in building.python(
        "import tenon\n"
        f"tenon.plugins.load('{rival}/libtenon_rival.so')\n"
        "spaces = {n.split('::')[0] for n in tenon.ops.names()} - {'tenon'}\n"
        "tenon.plugins.unload('rival')\n"
        "print(spaces, 'gone' if 'rich::cube' not in tenon.ops.names() else 'there')"
    )


# -- found by name --------------------------------------------------------------------------------


def site(name, library, change=None):
    """A folder for sys.path with a distribution that announces the library and must not be imported."""
    folder = building.folder(name)
    package = os.path.join(folder, "tenon_rich")
    os.mkdir(package)
    with open(os.path.join(package, "__init__.py"), "w") as file:
        file.write("raise RuntimeError('must not be imported')\n")
    with open(library, "rb") as file:
        data = file.read()
    path = os.path.join(package, os.path.basename(library))
    with open(path, "wb") as file:
        file.write(change(data) if change else data)
    os.chmod(path, 0o755)
    announce(folder, "rich", "tenon_rich")
    return {"PYTHONPATH": os.pathsep.join([folder, os.environ["PYTHONPATH"]])}


def test_a_namespace_is_found_by_the_package_that_announces_it(rich_folder):
    environment = site("found", f"{rich_folder}/libtenon_rich.so")
    text = building.python(
        "import tenon\n"
        "print('rich' in dir(tenon.ops))\n"
        "x = tenon.tensor([2.0], requires_grad=True)\n"
        "tenon.ops.rich.cube(x).backward()\n"  # gradients are there at the first use
        "print(x.grad.tolist(), sorted(dir(tenon.ops.rich))[:2])",
        **environment,
    )
    assert text.split("\n")[:2] == ["True", "[12.0] ['cube', 'fail']"]


def test_a_namespace_that_cannot_be_loaded_says_why_when_it_is_named(rich_folder):
    environment = site("refused", f"{rich_folder}/libtenon_rich.so", with_epoch(7))
    text = building.python(
        "import tenon\n"
        "print(tenon.ones(2).sum().item())\n"  # the program does not name it, and everything else works
        "try: tenon.ops.rich\n"
        "except AttributeError as error: print(error); print(type(error.__cause__).__name__)",
        **environment,
    )
    assert text.startswith("2.0\noperators of namespace rich cannot be loaded: ")
    assert "epoch" in text and "7" in text


def test_a_namespace_that_no_plugin_defines():
    with pytest.raises(AttributeError, match="no known plugin or package of namespace nonsense"):
        tenon.ops.nonsense  # noqa: B018


def test_stubs_pages_and_examples_are_generated(rich_folder):
    with open(f"{rich_folder}/gen/python/_operators.pyi") as file:
        stub = file.read()
    assert "def swiglu(x: TensorLike, gate: TensorLike, *, limit: float = 0.0, out:" in stub
    compile(stub, "stub", "exec")
    with open(f"{rich_folder}/gen/docs/rich.md") as file:
        assert "## swiglu_backward" in file.read()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"{rich_folder}/gen/python",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, **site("examples", f"{rich_folder}/libtenon_rich.so")},
    )
    assert "5 passed" in done.stdout, done.stdout + done.stderr
