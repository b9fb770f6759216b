# SPDX-License-Identifier: Apache-2.0
"""What holds in a process in which `import torch` means Tenon. test_torch_alias.py runs these cases in such a process."""

import importlib
import importlib.metadata
import importlib.util
import inspect
import io
import pickle
import sys

import pytest
import tenon
import torch
from tenon.compat.torch import alias
from tenon.compat.torch._alias import methods
from torch import nn
from torch.nn import functional as F

X = torch.arange(6.0).view(2, 3)
Q = torch.tensor([1.0, 3.0])


def test_a_second_call_does_nothing():
    assert alias() is torch and sys.modules["torch"] is torch
    assert torch.__version__ == importlib.metadata.version("torch") == "2.15.0"


def test_a_default_dtype_that_whole_numbers_do_not_get_warns():
    try:
        with pytest.warns(
            UserWarning, match=r"float32 here and .*float64 in PyTorch; give such numbers a dtype"
        ):
            torch.set_default_dtype(torch.float64)
        assert torch.tensor([1.0]).dtype == torch.float64
        assert (torch.arange(3) * 0.5).dtype == torch.float32
        with pytest.warns(UserWarning, match="whole numbers"):
            torch.set_default_tensor_type(torch.DoubleTensor)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.tensor([1.0]).dtype == torch.float32


# -- methods -------------------------------------------------------------------------------------------

METHODS = {
    "size": (lambda: X.size(), (2, 3)),
    "size of an axis": (lambda: (X.size(-1), X.size(dim=0)), (3, 2)),
    "max": (lambda: X.max(), 5.0),
    "max along an axis": (lambda: X.max(1), ([2.0, 5.0], [2, 2])),
    "max of both": (lambda: X.max(torch.tensor(3.0)), [[3.0, 3.0, 3.0], [3.0, 4.0, 5.0]]),
    "min by keyword": (lambda: X.min(dim=0, keepdim=True).indices, [[0, 0, 0]]),
    "std of a sample": (lambda: torch.Tensor([1, 3]).std() ** 2, pytest.approx(2.0)),
    "var": (lambda: torch.Tensor([1, 3]).var(unbiased=False), 1.0),
    "var and std by position": (
        lambda: [
            each.item()
            for each in (Q.var(True), Q.var(False), Q.std(True) ** 2, Q.var(0, False), Q.var((0,), True, True), Q.var(None, False))
        ],
        pytest.approx([2.0, 1.0, 2.0, 1.0, 2.0, 1.0]),
    ),
    "repeat": (lambda: torch.tensor([1, 2]).repeat(2, 2), [[1, 2, 1, 2], [1, 2, 1, 2]]),
    "split": (lambda: torch.arange(5).split(2), ([0, 1], [2, 3], [4])),
    "split by sizes": (lambda: torch.arange(5).split([4, 1]), ([0, 1, 2, 3], [4])),
    "chunk": (lambda: torch.arange(5).chunk(2, dim=0), ([0, 1, 2], [3, 4])),
    "gather": (lambda: X.gather(1, torch.tensor([[0], [2]])), [[0.0], [5.0]]),
    "index_select": (lambda: X.index_select(1, torch.tensor([2])), [[2.0], [5.0]]),
    "sort": (lambda: torch.tensor([2, 1]).sort(), ([1, 2], [1, 0])),
    "topk": (lambda: X.topk(1, dim=1, largest=True, sorted=True).values, [[2.0], [5.0]]),
    "median": (lambda: torch.tensor([1, 2, 3, 4]).median(), 2),
    "equal": (lambda: X.equal(X), True),
    "squeeze of a longer axis": (lambda: X.squeeze(0).size(), (2, 3)),
    "type": (lambda: (X.type(), X.long().type(), X.type("torch.IntTensor").dtype), ("torch.FloatTensor", "torch.LongTensor", torch.int32)),
    "view as a dtype": (lambda: torch.tensor([1.0]).view(torch.int32), [1065353216]),
    "permute, by keyword": (lambda: (X.permute(1, 0).size(), X.permute(dims=(1, 0)).size()), ((3, 2), (3, 2))),
    "reshape": (lambda: X.reshape(-1).size(), (6,)),
    "expand": (lambda: X.expand(4, -1, -1).size(), (4, 2, 3)),
    "transpose": (lambda: X.transpose(0, 1).size(), (3, 2)),
    "to": (lambda: X.to("cpu", torch.float64, non_blocking=True).dtype, torch.float64),
    "new": (lambda: (X.new_zeros(2, 2).sum(), X.new_tensor([1]).dtype), (0.0, torch.float32)),
    "sum of an axis by NumPy's words": (lambda: X.sum(axis=1, keepdims=True), [[3.0], [12.0]]),
    "any, all": (lambda: (X.any(), X.all(dim=1)), (True, [False, True])),
    "norm": (lambda: torch.tensor([3.0, 4.0]).norm(), 5.0),
    "unique": (lambda: torch.tensor([2, 1, 2]).unique(return_counts=True), ([1, 2], [1, 2])),
    "nonzero": (lambda: torch.tensor([0, 1]).nonzero(as_tuple=True), ([1],)),
    "take": (lambda: X.take(torch.tensor([5, 0])), [5.0, 0.0]),
    "where it is": (lambda: (X.is_cuda, X.is_sparse, X.is_cpu, X.device.type), (False, False, True, "cpu")),
    "numel of a shape": (lambda: (X.shape.numel(), X.shape[1:].numel(), (X.shape + (2,)).numel()), (6, 3, 12)),
}  # fmt: skip


def plain(value):
    if isinstance(value, tenon.Tensor):
        return value.tolist()
    return tuple(map(plain, value)) if isinstance(value, tuple) else value


@pytest.mark.parametrize("name", METHODS)
def test_methods_mean_those_of_pytorch(name):
    call, expected = METHODS[name]
    assert plain(call()) == expected


WRITES = {
    "add_": (lambda x: x.add_(X, alpha=2), [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]),
    "scatter_": (lambda x: x.scatter_(1, torch.tensor([[0], [2]]), 1.0), [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
    "index_add_": (lambda x: x.index_add_(0, torch.tensor([1]), X[1:], alpha=-1), [[0.0, 0.0, 0.0], [-3.0, -4.0, -5.0]]),
    "index_fill_": (lambda x: x.index_fill_(1, torch.tensor([0]), 7), [[7.0, 0.0, 0.0], [7.0, 0.0, 0.0]]),
    "clamp_": (lambda x: x.add_(X).clamp_(min=1, max=4), [[1.0, 1.0, 2.0], [3.0, 4.0, 4.0]]),
    "addcmul_": (lambda x: x.addcmul_(X, X, value=0.5), [[0.0, 0.5, 2.0], [4.5, 8.0, 12.5]]),
    "div_": (lambda x: x.add_(X).div_(2, rounding_mode="floor"), [[0.0, 0.0, 1.0], [1.0, 2.0, 2.0]]),
    "masked_fill_": (lambda x: x.masked_fill_(X > 2, -1.0), [[0.0, 0.0, 0.0], [-1.0, -1.0, -1.0]]),
    "unsqueeze_": (lambda x: x.unsqueeze_(0).squeeze_(0).t_().t_(), [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_methods_in_place_write(name):
    call, expected = WRITES[name]
    x = torch.zeros(2, 3)
    assert call(x) is x and x.tolist() == expected


def test_every_method_of_a_function_is_there_and_ends():
    """Functions that call a method by their own name would call each other for ever."""
    y = torch.rand(3, 3) + 0.5
    known = {
        "other": y,
        "exponent": y,
        "dim": 0,
        "mask": y > 1,
        "value": 2.0,
        "tensor1": y,
        "tensor2": y,
    }
    called = 0
    for name in methods._FUNCTIONS:
        parameters = list(inspect.signature(getattr(torch, name)).parameters.values())[1:]
        needed = [
            each.name
            for each in parameters
            if each.default is each.empty and each.kind == each.POSITIONAL_OR_KEYWORD
        ]
        method = getattr(y, name)
        if all(each in known for each in needed):
            called += 1
            try:
                method(*(known[each] for each in needed))
            except (TypeError, ValueError):  # of whole numbers alone, for example
                continue
    assert called > 150


def test_gradients_pass_and_are_tensors_of_the_dialect():
    p = nn.Parameter(torch.tensor([[1.0, 4.0], [3.0, 2.0]]))
    (p.max(1)[0].sum() + p.std()).backward()
    assert p.grad.size() == (2, 2) and isinstance(p.grad.shape, torch.Size)
    assert p.grad[0, 1] > p.grad[0, 0]
    a, b = (torch.tensor([0.0, 1.0], requires_grad=True) for _ in range(2))
    (a * 1).add_(b, alpha=3).sum().backward()
    assert b.grad.tolist() == [3.0, 3.0]


def test_changes_of_shape_in_place_are_refused_where_there_are_gradients():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(
        NotImplementedError, match=r"unsqueeze_\(\): .* write x = x.unsqueeze\(...\)"
    ):
        x.unsqueeze_(0)
    with pytest.raises(NotImplementedError, match="write x = x.detach()"):
        (x * 2).detach_()
    with pytest.raises(NotImplementedError, match="channels_last"):
        torch.ones(1, 1, 2, 2).to(memory_format=torch.channels_last)


# -- constructors --------------------------------------------------------------------------------------


def test_constructors():
    assert torch.Tensor(2, 3).size() == (2, 3) and torch.Tensor().numel() == 0
    assert torch.Tensor([1, 2]).dtype is torch.float32 and torch.Tensor(torch.Size([2])).size() == (
        2,
    )
    longs = torch.LongTensor([1, 2])
    assert longs.dtype == torch.int64 and isinstance(longs, torch.LongTensor)
    assert not isinstance(longs, torch.FloatTensor) and isinstance(longs, torch.Tensor)
    with pytest.raises(TypeError, match="expected extents, or one sequence"):
        torch.Tensor(1.5, 2)

    class Named(torch.Tensor):
        pass

    assert isinstance(Named(torch.ones(2)), torch.Tensor)
    assert torch.full((2,), torch.tensor(3.0)).tolist() == [3.0, 3.0]


def test_devices_that_are_not_there_have_names():
    cuda = torch.device("cuda:1")
    assert (cuda.type, cuda.index, str(cuda)) == ("cuda", 1, "cuda:1") and cuda == torch.device(
        "cuda", 1
    )
    assert isinstance(cuda, torch.device) and isinstance(X.device, torch.device)
    assert torch.device("cpu") == X.device
    with pytest.raises(TypeError, match="got AbsentDevice"):
        X.to(cuda)
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
    with pytest.raises(RuntimeError, match=r"torch.cuda.synchronize\(\): there is no CUDA"):
        torch.cuda.synchronize()


# -- what is not there ---------------------------------------------------------------------------------


def test_what_is_not_there_is_an_error_by_name():
    with pytest.raises(
        AttributeError, match=r"torch.nn.functional.nothing: Tenon, which stands for PyTorch"
    ):
        F.nothing
    with pytest.raises(ModuleNotFoundError, match="torch.nothing: Tenon"):
        importlib.import_module("torch.nothing")
    with pytest.raises(ImportError, match="cannot import name 'nothing' from 'torch'"):
        exec("from torch import nothing")
    assert not hasattr(torch, "nothing") and torch.distributed.is_available()
    with pytest.raises(NotImplementedError, match="expected backend 'gloo' or 'nccl', got 'mpi'"):
        torch.distributed.init_process_group("mpi")
    with pytest.raises(AttributeError, match="torch.distributed.rpc: Tenon, which stands"):
        torch.distributed.rpc
    with pytest.raises(NotImplementedError, match="torch.jit.trace"):
        torch.jit.trace(None, ())
    assert not isinstance(X, torch.fx.Proxy)
    with pytest.raises(NotImplementedError, match="torch.fx.Tracer"):
        torch.fx.Tracer()


def test_modules_have_specs_and_lists():
    assert importlib.util.find_spec("torch.nn").origin
    assert "Linear" in dir(nn) and "functional" in dir(nn) and "zeros" in dir(torch)
    assert "resnet18" in __import__("torchvision").models.__dict__


# -- modules and programs ------------------------------------------------------------------------------


def test_modules_show_their_parts():
    layer = nn.BatchNorm1d(2)
    assert list(layer._parameters) == ["weight", "bias"] and "running_mean" in layer._buffers
    layer._buffers["extra"] = torch.ones(1)
    assert "extra" in layer.state_dict()
    with pytest.raises(KeyError):
        layer._modules["weight"]


def test_a_compiled_module_is_a_module():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    compiled = torch.compile(model).eval()
    assert not model.training and compiled(torch.ones(1, 2)).size() == (1, 2)
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert len(list(compiled.parameters())) == 2 and len(compiled._orig_mod) == 2

    @torch.jit.script
    def double(x):
        return x * 2

    assert double(X).sum() == 30


# -- files ---------------------------------------------------------------------------------------------


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.norm = nn.BatchNorm1d(2)


def test_states_are_written_and_read(tmp_path):
    shared = torch.arange(4.0)
    state = {
        "a": shared,
        "again": shared,
        "t": X.T,
        "n": 3,
        "shape": X.shape,
        "empty": torch.zeros(0, 2),
        "half": X.bfloat16(),
    }
    for place in (tmp_path / "state.pt", io.BytesIO()):
        torch.save(state, place)
        if isinstance(place, io.BytesIO):
            place.seek(0)
        found = torch.load(place, map_location="cpu")
        assert found["n"] == 3 and found["shape"] == (2, 3) and found["t"].equal(X.T)
        assert found["empty"].size() == (0, 2) and found["half"].dtype is torch.bfloat16
        assert found["a"].data_ptr() == found["again"].data_ptr()
    with pytest.raises(RuntimeError, match=r"save x.detach\(\)"):
        torch.save(torch.ones(1, requires_grad=True) * 2, tmp_path / "graph.pt")


def test_whole_modules_are_read_where_they_may_be(tmp_path):
    path = tmp_path / "module.pt"
    model = Plain()
    torch.save(model, path)
    again = torch.load(path, weights_only=False)
    assert again.layer.weight.equal(model.layer.weight) and isinstance(
        again.norm.running_mean, nn.Buffer
    )
    with pytest.raises(Exception, match="Plain"):
        torch.load(path)
    with (
        torch.serialization.safe_globals([Plain, nn.Linear]),
        pytest.raises(pickle.UnpicklingError, match="BatchNorm1d"),
    ):
        torch.load(path)
    with torch.serialization.safe_globals([Plain, nn.Linear, nn.BatchNorm1d]):
        assert torch.load(path).layer.bias.equal(model.layer.bias)


def test_curves_are_written(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(tmp_path)
    writer.add_scalar("loss", torch.tensor(1.0), 0)
    writer.add_scalar("loss", 0.5)
    writer.close()
    assert list(tmp_path.iterdir())
    with pytest.raises(NotImplementedError, match=r"add_image\(\): curves"):
        writer.add_image("picture", X)


# -- sparse and nested tensors ---------------------------------------------------------------------------


def test_sparse_tensors():
    csr, coo = X.to_sparse_csr(), X.to_sparse()
    assert csr.layout == torch.sparse_csr and repr(csr.layout) == "sparse_csr" and csr.is_sparse_csr
    assert coo.layout == torch.sparse_coo and coo.is_sparse and coo.is_coalesced()
    assert X.layout == torch.strided and not X.is_sparse and not X.is_nested
    assert csr.crow_indices().tolist() == [0, 2, 5] and csr.col_indices().tolist()[:2] == [1, 2]
    assert csr.t().ccol_indices().tolist() == [0, 2, 5] and X.to_sparse_csc()._nnz() == 5
    assert coo._indices().shape == (2, 5) and coo._values().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert coo.sparse_dim() == 2 and coo.dense_dim() == 0
    assert torch.sparse.mm(csr, X.T).tolist() == (X @ X.T).tolist()
    assert "layout=csr" in repr(csr) and "values=tensor(" in repr(csr)
    assert pickle.loads(pickle.dumps(csr)).to_dense().tolist() == X.tolist()
    assert X.to_sparse(layout=torch.sparse_bsr, blocksize=(2, 3)).values().shape == (1, 2, 3)
    with pytest.raises(
        TypeError, match=r"crow_indices\(\): expected a tensor of layout csr or bsr"
    ):
        coo.crow_indices()


def test_nested_tensors():
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(1)], layout=torch.jagged)
    assert nested.is_nested and nested.layout == torch.jagged
    assert torch.nested.to_padded_tensor(nested, 0.0).tolist() == [[1.0, 1.0], [1.0, 0.0]]


def test_names_that_programs_ask_for():
    assert (
        torch.sym_max(1, 2.0) == 2.0 and torch.sym_int(2.7) == 2 and torch.sym_ite(True, 1, 2) == 1
    )
    x = torch.arange(6.0)
    assert x.resize_(2, 2).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert x.resize_(5).tolist() == [0.0, 1.0, 2.0, 3.0, 0.0]
    assert torch.ones(2, 3).T.dim_order() == (1, 0) and list(reversed(torch.arange(2))) == [1, 0]
    assert torch.arange(2).map_(torch.arange(2), lambda a, b: a + 2 * b).tolist() == [0, 3]
    torch.default_generator.manual_seed(3)
    first = torch.rand(2)
    torch.manual_seed(3)
    assert torch.equal(first, torch.rand(2)) and torch.get_device_module("cpu") is torch.cpu
    assert (
        not torch.is_conj(x) and torch.is_same_size(x, x) and torch.get_num_interop_threads() == 1
    )


def test_assert_close_says_what_is_apart():
    torch.testing.assert_close({"a": [X]}, {"a": [X + 1e-7]})
    with pytest.raises(AssertionError, match=r"expected shape \(3,\), got \(2, 3\) at \['a'\]"):
        torch.testing.assert_close({"a": X}, {"a": X[0]})
    with pytest.raises(
        AssertionError, match=r"expected 1.0 within rtol=.* got 0.0, 6 of 6 elements"
    ):
        torch.testing.assert_close(X, X + 1)
    with pytest.raises(AssertionError, match="expected dtype"):
        torch.testing.assert_close(X, X.double())
    with pytest.raises(ValueError, match="rtol and atol, or none of both"):
        torch.testing.assert_close(X, X, rtol=1.0)


# -- names of devices that are not there, precision, averages ------------------------------------------------


class Scaled(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.forward_dtype = (x @ x).dtype
        return x * 2

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        ctx.backward_dtype = (x @ x).dtype
        assert ctx.backward_dtype is ctx.forward_dtype
        return grad * 2


class Cast(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float64)
    def forward(ctx, x, names):
        assert names == ("a",)
        return x @ x

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def test_functions_keep_their_precision():
    x = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        y = Scaled.apply(x)
        assert Cast.apply(x, ("a",)).dtype is torch.float64
        assert torch.get_autocast_cpu_dtype() is torch.bfloat16 and torch.is_autocast_cpu_enabled()
    assert Cast.apply(x, ("a",)).dtype is torch.float32
    y.sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert torch.cuda.amp.custom_fwd(lambda ctx, x: x)(Plain(), 3) == 3


def test_averages_of_lists():
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, get_swa_multi_avg_fn

    for function, expected in ((get_ema_multi_avg_fn(0.75), 1.25), (get_swa_multi_avg_fn(), 1.5)):
        model = nn.Linear(1, 1, bias=False)
        averaged = AveragedModel(model, multi_avg_fn=function)
        for value in (1.0, 2.0):
            nn.init.constant_(model.weight, value)
            averaged.update_parameters(model)
        assert averaged.module.weight.item() == expected
    with pytest.raises(ValueError, match="one of avg_fn and multi_avg_fn"):
        AveragedModel(model, avg_fn=lambda *_: None, multi_avg_fn=function)


def test_names_of_an_accelerator_that_is_not_there():
    try:
        torch.cuda.nvtx.range_push("step")
    except torch.cuda.OutOfMemoryError:
        raise AssertionError from None
    except RuntimeError as error:
        assert "torch.cuda.nvtx.range_push(): there is no CUDA" in str(error)
    assert torch.accelerator.max_memory_allocated() == torch.cuda.max_memory_cached() == 0
    assert torch.cuda.get_arch_list() == [] and issubclass(torch.AcceleratorError, RuntimeError)
    assert not isinstance(X, torch.cuda.FloatTensor) and not isinstance(3, torch.SymInt)
    with pytest.raises(NotImplementedError, match="torch.cuda.LongTensor: Tenon"):
        torch.cuda.LongTensor([1])


def test_older_names_and_settings():
    a = torch.tensor([[4.0, 2.0], [2.0, 3.0]])
    assert torch.cholesky(a).equal(torch.linalg.cholesky(a))
    q, r = torch.qr(a)
    assert torch.allclose(q @ r, a, atol=1e-5)
    torch.set_deterministic_debug_mode("warn")
    assert torch.get_deterministic_debug_mode() == 1
    torch.set_deterministic_debug_mode(0)
    assert torch.get_deterministic_debug_mode() == 0
    with pytest.raises(RuntimeError, match="expected 0 to 2 or one of default, warn, error"):
        torch.set_deterministic_debug_mode("loud")
    assert isinstance(nn.utils.skip_init(nn.Linear, 2, 3), nn.Linear)
    assert nn.parallel.data_parallel(nn.Identity(), X) is X
    with pytest.raises(
        NotImplementedError, match="torch.nn.parallel.replicate.*there is one device"
    ):
        nn.parallel.replicate(nn.Identity(), [0, 1])
    scaler = torch.GradScaler("cuda")
    assert scaler.scale(X) is X and torch.random.default_generator is torch.default_generator


def test_memory_that_processes_share():
    x = torch.arange(3.0)
    assert not x.is_shared() and x.share_memory_() is x and x.is_shared() and x[1:].is_shared()
    assert x.share_memory_().tolist() == [0.0, 1.0, 2.0]
    y = torch.zeros(1)
    assert y.set_(x) is y and y.tolist() == [0.0, 1.0, 2.0] and y.data_ptr() == x.data_ptr()
    with pytest.raises(NotImplementedError, match=r"set_\(\): expected one tensor"):
        y.set_(x, 1, (1,), (1,))


def test_a_sampler_of_ranks():
    from torch.utils.data.distributed import DistributedSampler

    parts = [DistributedSampler(range(5), 2, rank, shuffle=False) for rank in range(2)]
    assert [list(each) for each in parts] == [[0, 2, 4], [1, 3, 0]]
    assert (len(parts[0]), parts[0].num_samples, parts[0].total_size) == (3, 3, 6)
    parts[0].set_epoch(4)
    assert parts[0].epoch == 4
    with pytest.raises(RuntimeError, match="expected a group of ranks"):
        DistributedSampler(range(5))
