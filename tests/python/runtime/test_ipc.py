# SPDX-License-Identifier: Apache-2.0
"""Tensors shared between processes."""

import base64
import gc
import json
import subprocess
import sys
import textwrap

import pytest
import reference_plugin
import tenon

pytestmark = reference_plugin.needs_reference
DEVICE = "reference"


@pytest.fixture(scope="module", autouse=True)
def plugin():
    reference_plugin.load()


def on_device(values):
    return tenon.tensor(values).to(DEVICE)


def in_other_process(handle, code):
    program = (
        f"import base64, tenon\ntenon.load_plugin({str(reference_plugin.PATH)!r})\n"
        f"handle = base64.b64decode({base64.b64encode(handle)!r})\n" + textwrap.dedent(code)
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_another_process_reads_and_writes():
    x = on_device([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    output = in_other_process(
        tenon.ipc.share(x),
        """
        x = tenon.ipc.open(handle)
        print(x.device, x.dtype, x.tolist())
        x += 10
        tenon.synchronize("reference")
        """,
    )
    assert output == "reference:0 float32 [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]"
    assert x.tolist() == [[11, 12, 13], [14, 15, 16]]


def test_views_keep_their_layout():
    x = on_device([[1, 2, 3], [4, 5, 6]])
    output = in_other_process(
        tenon.ipc.share(x.T[1:]), "x = tenon.ipc.open(handle); print(x.tolist(), x.strides)"
    )
    assert output == "[[2, 5], [3, 6]] (1, 3)"


def test_memory_is_closed_with_the_last_tensor():
    kept = on_device([1.0, 2.0])
    output = in_other_process(
        tenon.ipc.share(kept),
        """
        x = tenon.ipc.open(handle)
        y = x[1:]
        del x
        try:
            tenon.plugins.unload("reference")
        except RuntimeError as error:
            print("1 user of its `ipc` group" in str(error))
        print(y.tolist())
        del y
        tenon.plugins.unload("reference")
        print("unloaded")
        """,
    )
    assert output.split("\n") == ["True", "[2.0]", "unloaded"]


def test_what_cannot_be_shared():
    with pytest.raises(NotImplementedError, match="cpu:0 has no `ipc` group"):
        tenon.ipc.share(tenon.ones([2]))
    with pytest.raises(ValueError, match="copy the tensor first"):
        tenon.ipc.share(tenon.zeros([0]).to(DEVICE))
    with pytest.raises(TypeError, match="expected a Tensor"):
        tenon.ipc.share([1.0])


def changed(shared, **changes):
    prefix, _, text = shared.partition(b"{")
    return prefix + json.dumps({**json.loads(b"{" + text), **changes}).encode()


def test_handles_are_not_believed():
    x = on_device([1.0, 2.0])
    handle = tenon.ipc.share(x)
    bytes_held = 1 << 62
    for changes, text in [
        ({"shape": [1 << 40], "strides": [1]}, "reaches outside"),
        ({"shape": [2], "strides": [1 << 60]}, "reaches outside"),
        ({"shape": [2], "strides": [-1], "offset": 0}, "reaches outside"),
        ({"offset": bytes_held}, "reaches outside"),
        ({"offset": 2}, "reaches outside"),
        ({"shape": [-1]}, "reaches outside"),
        ({"shape": [2, 2]}, "expected what share"),
        ({"handle": base64.b64encode(b"short").decode()}, "expected what share"),
        ({"handle": "?"}, "cut or changed"),
        ({"dtype": "float31"}, "dtype"),
    ]:
        with pytest.raises(ValueError, match=text):
            tenon.ipc.open(changed(handle, **changes))
    for broken in (b"", b"hello", handle[:40], b"tenon-ipc/1 []"):
        with pytest.raises(ValueError, match="other bytes|cut or changed"):
            tenon.ipc.open(broken)
    with pytest.raises(TypeError, match="expected the bytes"):
        tenon.ipc.open("text")
    gc.collect()
    users = in_other_process(
        handle,
        """
        for _ in range(3):
            try:
                tenon.ipc.open(handle.replace(b'"offset": ', b'"offset": 99999'))
            except ValueError:
                pass
        tenon.plugins.unload("reference")
        print("nothing was left open")
        """,
    )
    assert users == "nothing was left open"
