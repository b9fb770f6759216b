# SPDX-License-Identifier: Apache-2.0
"""The samples of PyTorch and JAX, a few of them, where these are installed."""

import pytest


@pytest.mark.parametrize("gradients", [False, True])
def test_samples_of_pytorch(gradients):
    pytest.importorskip("torch", reason="PyTorch is not a dependency; its samples need it")
    pytest.importorskip("expecttest", reason="PyTorch's tables of samples import it")
    from .peers import op_db

    judge = op_db.judge_gradients if gradients else op_db.judge
    entries = {each.name: each for each in op_db.op_db}
    assert judge(entries["add"], 4)[0] == "agrees"
    assert judge(entries["index_put"], 4)[0] == "agrees"
    assert judge(entries["istft"], 40)[0] == "different"  # see docs/compat_namespaces.md
    assert judge(entries["to_sparse"], 4)[0] == "missing"


def test_samples_of_jax():
    pytest.importorskip("jax", reason="JAX is not a dependency; its harnesses need it")
    pytest.importorskip("absl", reason="JAX's harnesses import it")
    from .peers import jax_harnesses

    def judged(name):
        chosen = [h for h in jax_harnesses.test_harnesses.all_harnesses if h.group_name == name]
        return jax_harnesses.judge(chosen, 40)[0]

    assert judged("cumprod") == judged("pad") == judged("dot_general") == "agrees"
    assert judged("lt") == "refused"  # complex numbers have no order
    assert judged("gather") == "left out"
