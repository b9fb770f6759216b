# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's optimizers are told about how to compute is taken where it is true, and refused where it is not."""

import pytest
import tenon
from tenon import optim

EACH = [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad, optim.NAdam, optim.Adamax]


@pytest.mark.parametrize("kind", EACH)
def test_hints(kind):
    def made(**hints):
        return kind([tenon.nn.Parameter(tenon.ones([1]))], lr=0.1, **hints)

    for hints in (
        {"fused": True},
        {"foreach": None},
        {"foreach": True},
        {"foreach": False, "differentiable": False},
    ):
        assert not set(hints) & set(made(**hints).param_groups[0])
    with pytest.raises(
        NotImplementedError, match=f"{kind.__name__}: expected fused to be None or True"
    ):
        made(fused=False)
    with pytest.raises(NotImplementedError, match="got 2: small parameters are updated together"):
        made(foreach=2)
    assert made().updates_together and made(foreach=True).updates_together
    assert not made(foreach=False).updates_together
    with pytest.raises(NotImplementedError, match="no gradient passes through an update"):
        made(differentiable=True)
    with pytest.raises(TypeError, match="nonsense"):
        made(nonsense=True)


def test_own_optimizers_keep_their_parameters():
    class Own(optim.Optimizer):
        def __init__(self, params, foreach):
            super().__init__(params, {"foreach": foreach})

    assert Own([tenon.nn.Parameter(tenon.ones([1]))], foreach=7).defaults["foreach"] == 7
