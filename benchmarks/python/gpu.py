# SPDX-License-Identifier: Apache-2.0
"""Tenon on a GPU beside PyTorch on the same GPU: memory, matrix products, calls, compiled chains, training steps.

    python gpu.py [--device cuda] [--only memory] [--quick] [--json results.json]

Both libraries are in one process, for they share the device: a turn queues its calls and ends when the device has
run them. Rows of the group "calls" end when they are queued; the device is waited for outside of what is timed.
Rates of memory count every byte of operands and results once; their limit is the better of both libraries'
plain copies. PyTorch may not use TF32, which Tenon does not.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import sys
import time
from collections.abc import Callable

import numpy as np
import tenon
from _protocol import Turns, interleave
from _report import Report, parser
from programs import gelu, polynomial
from training_steps import LARGE, SMALL, Workload, data, starts

try:
    import torch
except ImportError:
    torch = None

TURN = 0.05  # seconds
ROWS = COLUMNS = 8192


class Queued(Turns):
    """Calls that are queued on the device; a turn ends when they have run, or `when queued`."""

    def __init__(self, call: Callable, synchronize: Callable, when_queued: bool = False):
        super().__init__(call)
        self.call, self.synchronize, self.when_queued = call, synchronize, when_queued

    def run(self, count: int) -> tuple[float, float]:
        self.synchronize()
        call = self.call
        begin = time.perf_counter()
        for _ in range(count):
            call()
        queued = time.perf_counter()
        self.synchronize()
        end = queued if self.when_queued else time.perf_counter()
        return end - begin, 1.0  # the host's clock does not matter beside the device's


@dataclasses.dataclass
class Peer:
    """One library with tensors of its own on the device."""

    name: str
    module: object
    device: str

    def tensor(self, array: np.ndarray, dtype: str | None = None):
        if self.name == "torch":
            made = torch.from_numpy(array).to(self.device)
        else:
            made = tenon.tensor(array).to(self.device)
        return made.to(getattr(self.module, dtype)) if dtype else made

    def synchronize(self) -> None:
        if self.name == "torch":
            torch.cuda.synchronize()
        else:
            tenon.synchronize(self.device)

    def numpy(self, value) -> np.ndarray:
        if self.name == "torch":
            return value.detach().double().cpu().numpy()
        return value.detach().cpu().to(tenon.float64).numpy()

    def names(self) -> dict:
        """What statements may name besides tensors: the module's functions."""
        functional = importlib.import_module(f"{self.name}.nn.functional")
        return {**vars(functional), **vars(self.module), "m": self.module, "F": functional}


@dataclasses.dataclass(frozen=True)
class Case:
    ours: str
    theirs: str = ""  # PyTorch's, where it differs
    shapes: dict[str, tuple] = dataclasses.field(default_factory=dict)  # name: shape
    dtype: str = "float32"
    work: Callable[[dict[str, tuple]], float] | None = None
    unit: str = "B"
    tolerance: float = 1e-4
    leaves: tuple[str, ...] = ()  # of `shapes`, those that want gradients

    def statement(self, library: str) -> str:
        return self.theirs if library == "torch" and self.theirs else self.ours


MATRIX = (ROWS, COLUMNS)
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "int64": 8}


def moved(*factors: float):
    """Bytes: so many matrices' elements, of four bytes or as the dtype has them."""
    return lambda dtype: sum(factors) * ROWS * COLUMNS * BYTES[dtype]


X = {"x": MATRIX}
XY = {"x": MATRIX, "y": MATRIX}
ROW = {"x": MATRIX, "w": (COLUMNS,), "b": (COLUMNS,)}
MEMORY = {
    "copy": Case("x.clone()", shapes=X, work=moved(2)),
    "add": Case("x + y", shapes=XY, work=moved(3)),
    "add bfloat16": Case("x + y", shapes=XY, dtype="bfloat16", work=moved(3), tolerance=2e-2),
    "multiply by a number": Case("x * 1.5", shapes=X, work=moved(2)),
    "multiply by a number, bfloat16": Case(
        "x * 1.5", shapes=X, dtype="bfloat16", work=moved(2), tolerance=2e-2
    ),
    "add a row": Case("x + b", shapes=ROW, work=moved(2)),
    "gelu": Case("gelu(x)", shapes=X, work=moved(2)),
    "gelu bfloat16": Case("gelu(x)", shapes=X, dtype="bfloat16", work=moved(2), tolerance=2e-2),
    "copy transposed": Case("x.T.contiguous()", shapes=X, work=moved(2)),
    "float32 to bfloat16": Case("x.to(m.bfloat16)", shapes=X, work=moved(1.5), tolerance=1e-2),
    "sum": Case("x.sum()", shapes=X, work=moved(1), tolerance=1e-2),
    "sum of rows": Case("x.sum(1)", shapes=X, work=moved(1)),
    "sum of columns": Case("x.sum(0)", shapes=X, work=moved(1)),
    "sum of rows, bfloat16": Case(
        "x.sum(1)", shapes=X, dtype="bfloat16", work=moved(1), tolerance=2e-2
    ),
    "softmax": Case("m.softmax(x, -1)", shapes=X, work=moved(2)),
    "softmax bfloat16": Case(
        "m.softmax(x, -1)", shapes=X, dtype="bfloat16", work=moved(2), tolerance=2e-2
    ),
    "layer_norm": Case("F.layer_norm(x, (8192,), w, b)", shapes=ROW, work=moved(2)),
    "layer_norm bfloat16": Case(
        "F.layer_norm(x, (8192,), w, b)",
        shapes=ROW,
        dtype="bfloat16",
        work=moved(2),
        tolerance=3e-2,
    ),
    "cumsum of rows": Case("x.cumsum(1)", shapes=X, work=moved(2), tolerance=1e-3),
    "index_select of rows": Case(
        "m.index_select(x, i, 0)",
        "m.index_select(x, 0, i)",
        shapes={**X, "i": (ROWS,)},
        work=moved(2),
    ),
    "sort of rows": Case("m.sort(x, 1)", "m.sort(x, 1)[0]", shapes=X, work=moved(2)),
}


def products(m, n, k, batches=1):
    return lambda dtype: 2.0 * m * n * k * batches


def product(m, n, k, dtype="float32", batches=(), tolerance=1e-3):
    shapes = {"x": (*batches, m, k), "y": (*batches, k, n)}
    work = products(m, n, k, int(np.prod(batches)))
    return Case("x @ y", shapes=shapes, dtype=dtype, work=work, unit="FLOP", tolerance=tolerance)


ATTENTION = {name: (8, 16, 1024, 64) for name in ("q", "k", "v")}
MATMUL = {
    "4096 float32": product(4096, 4096, 4096),
    "8192 bfloat16": product(8192, 8192, 8192, "bfloat16", tolerance=3e-2),
    "8192 float16": product(8192, 8192, 8192, "float16", tolerance=1e-2),
    "16 rows bfloat16": product(16, 8192, 8192, "bfloat16", tolerance=3e-2),
    "64 x 512 bfloat16": product(512, 512, 512, "bfloat16", (64,), tolerance=3e-2),
    "linear 8192 bfloat16": Case(
        "F.linear(x, y, b)",
        shapes={"x": (8192, 4096), "y": (4096, 4096), "b": (4096,)},
        dtype="bfloat16",
        work=products(8192, 4096, 4096),
        unit="FLOP",
        tolerance=3e-2,
    ),
    "conv2d 3x3": Case(
        "F.conv2d(x, y, None, 1, 1)",
        shapes={"x": (32, 64, 56, 56), "y": (64, 64, 3, 3)},
        work=products(32 * 56 * 56, 64, 64 * 9),
        unit="FLOP",
        tolerance=1e-3,
    ),
    "attention bfloat16, causal": Case(
        "F.scaled_dot_product_attention(q, k, v, causal=True)",
        "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
        shapes=ATTENTION,
        dtype="bfloat16",
        work=products(8 * 16 * 1024, 1024, 64),  # half of two products
        unit="FLOP",
        tolerance=3e-2,
    ),
    "attention bfloat16, causal, with gradients": Case(
        "m.autograd.grad(F.scaled_dot_product_attention(q, k, v, causal=True), (q, k, v), g)",
        "m.autograd.grad(F.scaled_dot_product_attention(q, k, v, is_causal=True), (q, k, v), g)",
        shapes={**ATTENTION, "g": ATTENTION["q"]},
        dtype="bfloat16",
        work=products(
            8 * 16 * 1024, 1024, 64 * 3.5
        ),  # half of two products and of the five of gradients
        unit="FLOP",
        tolerance=3e-2,
        leaves=("q", "k", "v"),
    ),
}
# Chains that both libraries compile; PyTorch also runs them as they are.
CHAINS = {
    "gelu of 9 steps": (gelu, MATRIX),
    "polynomial of 10 steps": (polynomial, MATRIX),
    "polynomial of 10 steps, 1000 elements": (polynomial, (1000,)),
}
ONE = {"x": (1,), "y": (1,), "z": (2, 2)}
CALLS = {
    code: Case(code, theirs, shapes=ONE)
    for code, theirs in {
        "x + y": "",
        "x + 1.0": "",
        "x.exp()": "",
        "x.sum()": "",
        "z @ z": "",
        "x[0:1]": "",
        "m.add(x, y, out=x)": "",
    }.items()
}
STEPS = {
    **{name: SMALL[name] for name in SMALL if "b1 " not in name and "forward" not in name},
    **LARGE,
}
QUICK = ("copy", "add", "gelu bfloat16", "softmax", "sum of columns", "8192 bfloat16", "x + y")


def operands(case: Case, peer: Peer) -> dict:
    rng = np.random.default_rng(0)
    made = {}
    for name, shape in case.shapes.items():
        if name == "i":
            made[name] = peer.tensor(rng.integers(0, ROWS, shape))
        else:
            period = rng.standard_normal(1 << 20, dtype=np.float32)  # new numbers take a second
            array = np.resize(period, shape)
            made[name] = peer.tensor(array, None if case.dtype == "float32" else case.dtype)
            made[name].requires_grad = name in case.leaves
    return made


def statement(case: Case, peer: Peer) -> Callable:
    names = {**peer.names(), **operands(case, peer)}
    return eval(f"lambda: {case.statement(peer.name)}", names)


def agree(name: str, case: Case, results: list[np.ndarray]) -> None:
    got, expected = results
    scale = max(1.0, float(np.abs(expected).max()))
    worst = float(np.abs(got.reshape(expected.shape) - expected).max()) / scale
    if not worst <= case.tolerance:
        raise AssertionError(f"{name}: results differ by {worst:.2g} of the largest")


def first(value):
    return value[0] if isinstance(value, (list, tuple)) else value


class Bench:
    def __init__(self, options):
        self.options = options
        self.report = Report("gpu", options, ["tenon", "torch"])
        self.peers = [Peer("tenon", tenon, options.device), Peer("torch", torch, "cuda")]
        self.copy = None
        self.failures: list[str] = []

    def wanted(self, group: str, name: str) -> bool:
        quick = self.options.quick and name not in QUICK
        return not quick and self.report.selects(name, group)

    def time(self, group, name, calls, work=None, limit=None, when_queued=False):
        turns = {
            peer.name: Queued(call, peer.synchronize, when_queued)
            for peer, call in zip(self.peers, calls)
        }
        times = interleave(turns, self.options.rounds, TURN)
        self.report.add(name, times, group=group, work=work, limit=limit)
        return times

    def cases(self, group: str, cases: dict[str, Case]) -> None:
        for name, case in cases.items():
            if self.wanted(group, name):
                self.attempt(f"{group}: {name}", self.case, group, name, case)

    def attempt(self, what: str, do: Callable, *arguments) -> None:
        try:
            do(*arguments)
        except Exception as error:  # one row that fails does not cost the others
            self.failures.append(f"{what}: {type(error).__name__}: {str(error)[:300]}")
            print(self.failures[-1], file=sys.stderr, flush=True)

    def case(self, group: str, name: str, case: Case) -> None:
        calls = [statement(case, peer) for peer in self.peers]
        agree(name, case, [peer.numpy(first(call())) for peer, call in zip(self.peers, calls)])
        work = (case.work(case.dtype), case.unit) if case.work else None
        limit = ("copy", self.copy) if self.copy and case.unit == "B" and work else None
        times = self.time(group, name, calls, work, limit, when_queued=group == "calls")
        if name == "copy":
            self.copy = work[0] / min(times.best(each) for each in times.rounds)

    def chains(self) -> None:
        for name, (chain, shape) in CHAINS.items():
            for theirs in ("as it is", "torch.compile"):
                if self.wanted("compiled", name):
                    self.attempt(f"compiled: {name}", self.chain, name, chain, shape, theirs)

    def chain(self, name: str, chain: Callable, shape: tuple[int, ...], theirs: str) -> None:
        """tenon.compile beside PyTorch's function, as it is or compiled."""
        calls = []
        for peer in self.peers:
            tensors = operands(Case("", shapes={"x": shape, "y": shape}), peer).values()
            function = functools.partial(chain, peer.module)
            if peer.name == "tenon":
                function = tenon.compile(lambda x, y: chain(tenon, x, y))
            elif theirs == "torch.compile":
                function = torch.compile(lambda x, y: chain(torch, x, y))
            calls.append(functools.partial(function, *tensors))
        for _ in range(3):
            results = [peer.numpy(call()) for peer, call in zip(self.peers, calls)]
        agree(name, Case("", tolerance=1e-5), results)
        factor = 3 * BYTES["float32"] * int(np.prod(shape))
        limit = ("copy", self.copy) if self.copy else None
        self.time("compiled", f"{name}, PyTorch {theirs}", calls, (factor, "B"), limit)

    def steps(self) -> None:
        for name, work in STEPS.items():
            if self.wanted("steps", name):
                self.attempt(f"steps: {name}", self.step, name, work)

    def step(self, name: str, work: Workload) -> None:
        import _training_modules as modules

        x, target = data(work)
        calls = [
            modules.training_step(each.name, work, starts(work), x, target, each.device)
            for each in self.peers
        ]
        losses = [
            [float(peer.numpy(call())) for _ in range(3)] for peer, call in zip(self.peers, calls)
        ]
        ours, theirs = losses
        np.testing.assert_allclose(ours, theirs, rtol=3e-2 if work.autocast else 2e-3)
        self.time("steps", name, calls)
        if "Adam" in name:  # it counts steps in Python, which no program can hold
            return
        compiled = tenon.compile(calls[0])
        for _ in range(3):
            compiled()
        if not compiled.programs:
            raise RuntimeError(compiled.explain())
        self.time("steps", f"{name}, compiled", [compiled, calls[1]])


def main() -> None:
    options = parser(__doc__, rounds=11)
    options.add_argument("--device", default="cuda")
    options = options.parse_args()
    if torch is None or not torch.cuda.is_available():
        sys.exit("gpu.py: expected PyTorch and a GPU that it sees; nothing was measured")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    bench = Bench(options)
    bench.report.data["machine"]["gpu"] = torch.cuda.get_device_name()
    print(torch.cuda.get_device_name(), tenon.device(options.device))
    bench.cases("memory", MEMORY)
    bench.cases("matmul", MATMUL)
    bench.cases("calls", CALLS)
    with tenon.no_grad(), torch.no_grad():
        bench.chains()
    bench.steps()
    bench.report.close()
    if bench.failures:
        sys.exit("\n".join(["not measured:", *bench.failures]))


if __name__ == "__main__":
    main()
