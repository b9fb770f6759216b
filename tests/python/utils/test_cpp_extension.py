# SPDX-License-Identifier: Apache-2.0
"""Operators in C++ that are built at run time: parameters, gradients, errors, the build."""

import contextlib
import gc
import os
import shutil
import subprocess
import sys
import threading

import pytest
import tenon
from devices import DEVICES
from tenon.autograd import gradcheck
from tenon.utils import cpp_extension
from tenon.utils.cpp_extension import CompileError, build_library, load, load_inline

HERE = os.path.dirname(os.path.abspath(__file__))
OPERATORS = os.path.join(HERE, "cpp_extension", "operators.cpp")

pytestmark = pytest.mark.skipif(
    not cpp_extension.is_build_available(), reason="no C++ compiler, or no ninja"
)


@pytest.fixture(autouse=True, scope="module")
def extensions(tmp_path_factory):
    """A cache of our own, also in a folder that others may write to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENON_EXTENSIONS_DIR", str(tmp_path_factory.mktemp("extensions")))
        patch.setenv("TENON_PLUGIN_TRUST", "any")
        yield


@pytest.fixture(scope="module")
def ext():
    return load("ext_test", [OPERATORS])


@pytest.fixture
def source(tmp_path):
    """A function that writes a source file and returns its path."""

    def write(text, name="source.cpp"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def call(path, function="answer"):
    import ctypes

    return getattr(ctypes.CDLL(path), function)()


# -- operators ------------------------------------------------------------------------------------


def test_operators_are_attributes_and_in_their_namespace(ext):
    x = tenon.tensor([1.0, 9.0])
    expected = tenon.silu(tenon.tensor([1.0, 7.0])) * x
    assert ext.swiglu(x, x).tolist() == pytest.approx(expected.tolist())
    assert ext.swiglu is tenon.ops.extension_test.swiglu
    assert "swiglu" in dir(ext) and "ext_test" in repr(ext)
    assert ext.swiglu.__doc__.startswith("A gated unit.") or "A gated unit." in ext.swiglu.__doc__
    assert ext.swiglu.origin.startswith("operators.cpp:")
    with pytest.raises(AttributeError, match="extension 'ext_test' has no operator 'nothing'"):
        ext.nothing


def test_every_kind_of_parameter(ext):
    x = tenon.zeros((2,), dtype=tenon.float64)
    one = tenon.ones((2,), dtype=tenon.float64)

    def value(*arguments, **keywords):
        results = ext.fingerprint(*arguments, **keywords).tolist()
        assert results[0] == results[1]
        return results[0]

    # i, f, b, s, len(text) / 2, dtype, ints, floats
    default = 1 + 0.25 + 1000 + 2 + 1.5 + 13 + 3 + 0.5
    assert value(x, None, []) == default
    assert value(x, one, [one, one]) == default + 3
    assert value(x, None, [], i=2, f=1) == default + 1.75
    assert value(x, None, [], b=False, s=2.5, text="") == default - 1000 + 0.5 - 1.5
    assert (
        value(x, None, [], dtype=tenon.bool, ints=[], floats=[1.0, 1.0]) == default - 13 - 3 + 1.5
    )
    present = {
        "maybe_int": 1e4,
        "maybe_float": 2e4,
        "maybe_text": 4e4,
        "maybe_dtype": 8e4,
        "maybe_device": 16e4,
        "maybe_ints": 32e4,
        "maybe_floats": 64e4,
    }
    samples = [0, 0.0, "", tenon.bool, "cpu", [0], [0.0]]
    for (name, share), sample in zip(present.items(), samples):
        if name == "maybe_device":
            sample = tenon.device(sample)
        assert value(x, None, [], **{name: sample}) == default + share, name


def test_numbers_stand_for_tensors(ext):
    x = tenon.tensor([1.0, 2.0], dtype=tenon.float16)
    assert ext.swiglu(x, 2.0).dtype == tenon.float16
    assert ext.swiglu(x, 2).tolist() == pytest.approx((tenon.silu(x) * 2).tolist())


def test_elementwise_forms(ext):
    x = tenon.tensor([1.0, 2.0])
    assert ext.cube(x).tolist() == [1.0, 8.0]
    assert ext.cube(tenon.tensor([[2.0, 0.0], [3.0, 0.0]])[:, 0]).tolist() == [8.0, 27.0]
    assert ext.cube(tenon.tensor(2.0)).item() == 8.0
    assert ext.cube(tenon.zeros((0, 3))).shape == (0, 3)
    out = tenon.zeros((2,))
    assert ext.cube(x, out=out) is out and out.tolist() == [1.0, 8.0]
    ext.cube_(x)
    assert x.tolist() == [1.0, 8.0]
    ext.scale_(x, 2.0)
    assert x.tolist() == [2.0, 16.0]
    with pytest.raises(NotImplementedError, match="no kernel for int64"):
        ext.cube(tenon.tensor([1, 2]))


def test_several_results(ext):
    result = ext.bounds(tenon.tensor([[3.0, -1.0], [2.0, 0.0]]))
    assert result.low.item() == -1.0 and result.high.item() == 3.0
    assert [t.tolist() for t in ext.twice_each([tenon.ones((1,)), tenon.ones((2,))])] == [
        [2.0],
        [2.0, 2.0],
    ]
    assert len(ext.twice_each([])) == 0


def test_kernels_and_functions_that_allocate(ext):
    x = tenon.tensor([-1.0, 2.0, -3.0, 4.0])
    assert ext.positive(x).tolist() == [2.0, 4.0]
    assert ext.copied(x).tolist() == x.tolist()
    out = tenon.zeros((2,))
    ext.positive(x, out=out)
    assert out.tolist() == [2.0, 4.0]
    same = ext.same(x)  # an argument that is returned becomes a result of its own
    same += 1
    assert x.tolist() == [-1.0, 2.0, -3.0, 4.0]


@pytest.mark.parametrize("device", DEVICES)
def test_functions_run_on_every_device(ext, device):
    x = tenon.tensor([1.0, 2.0]).to(device).requires_grad_()
    assert ext.swiglu(x, x).cpu().tolist() == pytest.approx((tenon.silu(x) * x).cpu().tolist())
    y = ext.doubled(x)
    assert str(y.device).startswith(device) and y.cpu().tolist() == [2.0, 4.0]
    y.sum().backward()
    assert x.grad.cpu().tolist() == [20.0, 20.0]


def test_meta(ext):
    x = tenon.ones((2, 3), device="meta")
    assert ext.cube(x).shape == ext.scale(x, 2.0).shape == ext.swiglu(x, x).shape == (2, 3)
    assert ext.bounds(x).low.shape == ()
    assert ext.exponential(x).shape == (2, 3)
    with pytest.raises(NotImplementedError, match=r"\.shape"):
        ext.positive(x)
    with pytest.raises(NotImplementedError, match=r"\.shape"):
        ext.doubled(x)


# -- gradients ------------------------------------------------------------------------------------


VALUES = [0.5, -1.5, 2.0]


def leaf():
    return tenon.tensor(VALUES, dtype=tenon.float64, requires_grad=True)


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("cube", []),
        ("scale", [2.5]),
        ("exponential", []),
        ("same", []),
        ("positive", []),
    ],
)
def test_gradients_of_functions(ext, name, arguments):
    assert gradcheck(lambda x: getattr(ext, name)(x, *arguments) * 3, [leaf()])


def test_gradients_of_several_results_and_lists(ext):
    for function in (
        lambda x: ext.bounds(x).high * 2,
        lambda x: ext.bounds(x).high * ext.bounds(x).low,
        lambda x: ext.sum_all([x, x * x]),
        lambda x: ext.twice_each([x * x])[0],
        lambda x: ext.swiglu(x, x),
    ):
        assert gradcheck(function, [leaf()])


def test_the_gradient_is_the_functions_own(ext):
    x = leaf()
    ext.doubled(x).sum().backward()
    assert x.grad.tolist() == [20.0, 20.0, 20.0]
    assert not ext.indices(x).requires_grad
    assert ext.doubled(x).grad_fn is not None


def test_second_order(ext):
    x = leaf()
    (first,) = tenon.grad(ext.cube(x).sum(), [x], create_graph=True)
    (second,) = tenon.grad(first.sum(), [x])
    assert second.tolist() == pytest.approx([6 * v for v in VALUES])
    (first,) = tenon.grad(ext.exponential(x).sum(), [x], create_graph=True)
    (second,) = tenon.grad(first.sum(), [x])
    assert second.tolist() == pytest.approx(tenon.exp(x).tolist())


def test_in_place_keeps_history(ext):
    x = leaf()
    y = x * 1
    ext.scale_(y, 3.0)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 3.0]


def test_from_many_threads(ext):
    failures = []

    def work():
        for _ in range(50):
            x = leaf()
            ext.cube(x).sum().backward()
            if x.grad.tolist() != [3 * v * v for v in VALUES]:
                failures.append(x.grad)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_nothing_is_kept(ext):
    def use_everything():
        x = leaf()
        for name in ("cube", "doubled", "same", "positive", "exponential"):
            getattr(ext, name)(x).sum().backward()
        ext.bounds(x).high.backward()
        ext.sum_all([x, *ext.twice_each([x])]).sum().backward()
        ext.swiglu(x, 2.0)
        ext.scale_(x.detach(), 2.0)
        for what in ("operator", "empty", "int", "forgiven"):
            with contextlib.suppress(Exception):
                ext.raise_error(x.detach(), what)
        with contextlib.suppress(tenon.InternalError):
            ext.assign(x)

    use_everything()
    gc.collect()
    before = tenon.memory.stats("cpu")["current"]
    for _ in range(20):
        use_everything()
    gc.collect()
    assert tenon.memory.stats("cpu")["current"] == before


# -- errors of functions --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "what, error, text",
    [
        ("runtime_error", RuntimeError, "extension_test::raise_error > out of patience"),
        ("bad_alloc", MemoryError, "out of host memory"),
        ("invalid_argument", ValueError, "not that"),
        ("out_of_range", IndexError, "too far"),
        ("error", NotImplementedError, "not here"),
        ("int", tenon.InternalError, "no std::exception"),
        ("operator", ValueError, r"raise_error > \[matmul\]"),
        ("empty", tenon.InternalError, "returned an empty Tensor for result 0"),
    ],
)
def test_what_a_function_throws(ext, what, error, text):
    with pytest.raises(error, match=text):
        ext.raise_error(tenon.ones((2, 2)), what)


def test_a_failure_that_was_caught_is_forgotten(ext):
    assert ext.raise_error(tenon.ones((2, 2)), "forgiven").tolist() == [[2.0, 2.0]] * 2


def test_what_a_kernel_does_wrong(ext):
    x = tenon.ones((100_000,))
    with pytest.raises(RuntimeError, match="raise_in_kernel > the kernel gave up"):
        ext.raise_in_kernel(x, False)
    with pytest.raises(RuntimeError, match="a thread gave up"):
        ext.raise_in_kernel(x, True)
    with pytest.raises(tenon.InternalError, match="assigned a tensor to its result"):
        ext.assign(x)
    with pytest.raises(tenon.InternalError, match=r"expected \(2,\) float32 .* returned \(\)"):
        ext.wrong_shape(tenon.ones((2,)))
    with pytest.raises(ValueError, match="expected a tensor with elements"):
        ext.bounds(tenon.zeros((0,)))


@pytest.mark.parametrize(
    "fault, text",
    [
        ("count", "function: expected a C\\+\\+ function of 2 arguments, .* got one of 3"),
        ("type", "function, parameter `limit`: expected int64_t or int for int, got double"),
        (
            "optional",
            "parameter `g`: expected std::optional of .* for Tensor\\?, got const Tensor&",
        ),
        ("results", "function: expected it to return 2 tensors, got 1"),
        ("schema", "operators.cpp:.*Tensr"),
        ("namespace", "expected an operator of namespace extension_test, .* got tenon::f"),
        ("empty", "neither a function, .* nor a kernel"),
        ("shape", 'nothing says their shape; add .like\\("x"\\), .shape<F>\\(\\)'),
        ("kernel", 'a kernel for whole results, and nothing says their shape; add .like\\("x"\\)'),
        ("like", 'like\\("y"\\): expected the name of a Tensor parameter'),
        (
            "grad",
            "grad: result `out`: expected const Tensor&, got double",
        ),
        ("gradients", "grad: expected it to return 2 gradients, .* got 1"),
        ("absent", "result `a`: expected const std::optional<Tensor>&"),
        ("throw", "no operators today"),
    ],
)
def test_definitions_that_do_not_fit(ext, tmp_path, monkeypatch, fault, text):
    other = tmp_path / "libtenon_other.so"
    content = cpp_extension._note.renamed(open(ext.__file__, "rb").read(), "other")
    other.write_bytes(content)
    monkeypatch.setenv("EXTENSION_TEST_FAULT", fault)
    with pytest.raises(RuntimeError, match=text):
        tenon.load_plugin(other)


# -- building -------------------------------------------------------------------------------------


def test_builds_are_kept_and_changes_are_seen(source, tmp_path, capfd):
    header = tmp_path / "value.h"
    header.write_text("#define VALUE 41\n")
    path = source('#include "value.h"\nextern "C" int answer() { return VALUE + 1; }\n')
    first = build_library("kept", [path], verbose=True)
    assert call(first) == 42
    assert "compiling source.cpp" in capfd.readouterr().err
    assert build_library("kept", [path], verbose=True) == first
    assert "compiling" not in capfd.readouterr().err
    header.write_text("#define VALUE 42\n")
    second = build_library("kept", [path])
    assert second != first and call(second) == 43
    assert call(build_library("kept", [path], cflags=["-DVALUE=1", "-w"])) == 43
    header.write_text("#define VALUE 41\n")
    assert build_library("kept", [path]) == first


def test_only_what_changed_is_compiled(source, capfd):
    one = source('extern "C" int answer() { return 1; }\n', "one.cpp")
    two = source("int other() { return 2; }\n", "two.cpp")
    build_library("parts", [one, two])
    source("int other() { return 3; }\n", "two.cpp")
    build_library("parts", [one, two], verbose=True)
    said = capfd.readouterr().err
    assert "compiling two.cpp" in said and "compiling one.cpp" not in said


def test_names_that_shells_and_ninja_know(source, tmp_path, monkeypatch):
    folder = tmp_path / 'it\'s a $HOME "of" 100% & more'
    folder.mkdir()
    monkeypatch.setenv("TENON_EXTENSIONS_DIR", str(folder / "ca:che"))
    path = folder / "the source;.cpp"
    path.write_text('extern "C" int answer() { return sizeof(TEXT); }\n')
    assert call(build_library("quoted", [path], cflags=['-DTEXT="a b$c\'d"'])) == 8
    assert not (tmp_path / "HOME").exists()


def test_compile_errors_say_what_and_how(source):
    path = source("int broken = missing_name;\n")
    with pytest.raises(CompileError) as raised:
        build_library("broken", [path])
    text = str(raised.value)
    assert "building extension 'broken' failed" in text
    assert "missing_name" in text and "source.cpp:1" in text  # the compiler's words
    assert "-std=c++20" in text and "-c" in text  # the command
    source('extern "C" int answer() { return 1; }\n')
    assert call(build_library("broken", [path])) == 1


def test_unresolved_symbols_are_errors_of_the_build(source):
    path = source('int elsewhere();\nextern "C" int answer() { return elsewhere(); }\n')
    with pytest.raises(CompileError, match="elsewhere"):
        build_library("unresolved", [path])


def test_wrong_calls(source, monkeypatch):
    path = source("int x;\n")
    with pytest.raises(ValueError, match="expected a name like"):
        load("No-Name", [path])
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load("absent", ["/nowhere/absent.cpp"])
    with pytest.raises(ValueError, match="at least one file"):
        load("absent", [])
    with pytest.raises(ValueError, match="expected files ending in"):
        load("absent", [__file__])
    with pytest.raises(TypeError, match="extra_cflags: expected a list"):
        load("absent", [path], extra_cflags="-O3")
    with pytest.raises(CompileError, match="the sources define no operators"):
        load("nothing", [path])
    with pytest.raises(ValueError, match="functions: expected signatures"):
        load_inline("nothing", "int x;", functions=["f"])
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(CompileError, match="CXX names was not found: no-such-compiler"):
        load("absent", [path])
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "/nowhere")
    assert not cpp_extension.is_build_available()
    with pytest.raises(CompileError, match="expected a C\\+\\+20 compiler, found none"):
        load("absent", [path])


def test_a_folder_that_cannot_be_written(source, monkeypatch):
    monkeypatch.setenv("TENON_EXTENSIONS_DIR", "/proc/extensions")
    with pytest.raises(CompileError, match="name a folder of your own with TENON_EXTENSIONS_DIR"):
        build_library("nowhere", [source("int x;\n")])


MANY = """
import sys
from tenon.utils.cpp_extension import build_library
print(build_library("many", [sys.argv[1]], verbose=True))
"""


def test_many_processes_build_once(source):
    path = source('extern "C" int answer() { return 7; }\n')
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", MANY, path],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    results = [process.communicate() for process in processes]
    assert all(process.returncode == 0 for process in processes), results
    assert len({out for out, _ in results}) == 1
    assert sum("compiling source.cpp" in err for _, err in results) == 1


HOLD = """
import sys, time
from tenon.utils.cpp_extension._cache import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_lock_does_not_survive_its_holder(tmp_path):
    folder = str(tmp_path / "locked")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, folder], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with cpp_extension._cache.locked(folder):
        pass


# -- loading again --------------------------------------------------------------------------------

EDITED = """
#include <tenon/extension.hpp>
tenon::Tensor f(const tenon::Tensor& x) { return x * FACTOR; }
tenon::Tensor g(const tenon::Tensor& dout, tenon::Unread) { return dout * FACTOR; }
TENON_OPERATORS(edited, m) { m.def<f>("times(Tensor x) -> Tensor").grad<g>(); }
"""


def test_loading_again_after_an_edit(source):
    path = source(EDITED.replace("FACTOR", "2.0"))
    old = load("edited", [path], extra_cflags=["-O0"])
    held = old.times
    x = tenon.tensor([1.0], requires_grad=True)
    y = old.times(x)
    assert load("edited", [path], extra_cflags=["-O0"]) is old

    source(EDITED.replace("FACTOR", "3.0").replace("(Tensor x)", "(Tensor y)"))
    new = load("edited", [path], extra_cflags=["-O0"])
    assert new is not old and new.__file__ != old.__file__
    assert new.times(y=x).tolist() == old.times(x).tolist() == [3.0]
    y.sum().backward()  # recorded with the old one
    assert x.grad.tolist() == [2.0]
    with pytest.raises(LookupError, match="look the operator up again"):
        held(x)

    # What is refused leaves everything as it was.
    source(EDITED.replace("FACTOR", "4.0").replace("m.def<f>", "m.def<g>"))
    with pytest.raises(RuntimeError, match="expected a C\\+\\+ function of 1 arguments"):
        load("edited", [path], extra_cflags=["-O0"])
    assert tenon.ops.edited.times(x).tolist() == [3.0]


def test_inline():
    ext = load_inline(
        "inlined",
        "tenon::Tensor plus(const tenon::Tensor& x, double by) { return x + by; }",
        functions={"add_to(Tensor x, float by=1.0) -> Tensor": "plus"},
        extra_cflags=["-O0"],
    )
    assert ext.add_to(tenon.ones((1,))).tolist() == [2.0]
    with pytest.raises(CompileError, match=r"inlined.cpp_sources\[0\]:1"):
        load_inline("inlined", "int x = y;")
    assert ext.add_to(tenon.ones((1,)), 2.0).tolist() == [3.0]


# -- hygiene --------------------------------------------------------------------------------------


def test_the_library_is_a_clean_plugin(ext):
    from tenon.cli.plugins.elf_lint import lint

    assert not list(lint(ext.__file__))


CUDA_KERNEL = """
__global__ void fill(float* out) { out[threadIdx.x] = 1.0f; }
void launch(float* out) { fill<<<1, 32>>>(out); }
"""


@pytest.mark.skipif(not cpp_extension.is_cuda_build_available(), reason="no nvcc")
@pytest.mark.skipif("san.so" in os.environ.get("LD_PRELOAD", ""), reason="nvcc fails with it")
def test_cuda_sources_compile_and_link(tmp_path):
    (tmp_path / "kernel.cu").write_text(CUDA_KERNEL)
    (tmp_path / "main.cpp").write_text(
        "void launch(float*);\n"
        'extern "C" int answer(float* out) { if (out) launch(out); return 5; }\n'
    )
    path = build_library("cuda", [tmp_path / "kernel.cu", tmp_path / "main.cpp"])
    import ctypes

    assert ctypes.CDLL(path).answer(None) == 5


def test_cuda_sources_without_nvcc(source, monkeypatch):
    path = source("", "kernel.cu")
    monkeypatch.setenv("CUDA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", os.path.dirname(shutil.which("c++") or "") or "/usr/bin")
    if shutil.which("nvcc"):
        pytest.skip("nvcc lies beside the C++ compiler")
    with pytest.raises(CompileError, match="expected nvcc for .cu sources"):
        build_library("cuda", [path])
