# SPDX-License-Identifier: Apache-2.0
"""Suites of array libraries' users, run on Tenon's arrays by those suites' own tests.

    python -m tests.bridges.array_suites [einops opt_einsum scipy sklearn array_api_extra array_api_compat]

einops' own tests take our back end; opt_einsum's table of contractions is computed on tensors. SciPy's and scikit-learn's own tests
of the array API run with tenon.array_api in the place of array_api_strict, which they know (`-p tests.bridges.array_suites`
puts it there). Of array-api-extra and array-api-compat those copies are asked that SciPy brings: each function beside NumPy. Prints
a line for each suite, and what failed. Tests of SciPy and scikit-learn that are known to fail are in array_failures.txt, by reason;
one that fails and is not there is an error, and one that is there and passes is told.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from typing import Any

SCIPY = [
    "scipy.special.tests.test_support_alternative_backends",
    "scipy.stats.tests.test_variation",
    "scipy.stats.tests.test_entropy",
    "scipy.fft.tests.test_basic",
    "scipy.fft.tests.test_helper",
    "scipy.cluster.tests.test_vq",
    "scipy.signal.tests.test_windows",
    "scipy.integrate.tests.test_quadrature",
    "scipy.differentiate.tests.test_differentiate",
    "scipy._lib.tests.test_array_api",
]
SKLEARN = [
    "sklearn.utils.tests.test_array_api",
    "sklearn.metrics.tests.test_common",
    "sklearn.preprocessing.tests.test_data",
    "sklearn.decomposition.tests.test_pca",
    "sklearn.linear_model.tests.test_ridge",
    "sklearn.discriminant_analysis",
]

KNOWN = pathlib.Path(__file__).with_name("array_failures.txt")


def stand_in() -> None:
    """tenon.array_api as array_api_strict, and Tenon's back end of einops as one that its tests look for."""
    import types

    import tenon
    import tenon.array_api as xp

    module: Any = xp
    module.__version__ = "2.4"
    module.set_array_api_strict_flags = lambda **flags: None
    module.Device = lambda name: "cpu"
    module.ArrayAPIStrictFlags = types.SimpleNamespace
    sys.modules["array_api_strict"] = module
    if os.environ.get("EINOPS_TEST_BACKENDS"):
        from einops import _backends
        from tenon.compat import einops as own

        def from_numpy(self: Any, x: Any) -> Any:  # its tests ask for gradients of such arrays
            made = tenon.from_numpy(x)
            return made.requires_grad_() if made.dtype.is_floating_point else made

        own.Backend.from_numpy = from_numpy
        _backends.CupyBackend = own.Backend
        _backends.OneFlowBackend = own.Backend


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """SciPy leaves out for other libraries what it means for NumPy alone, by the names of those that it knows."""
    import pytest

    for item in items:
        for marker in item.iter_markers("skip_xp_backends"):
            if marker.kwargs.get("np_only") and "array_api_strict" not in marker.kwargs.get(
                "exceptions", ()
            ):
                item.add_marker(pytest.mark.skip(reason="for NumPy alone"))


def run_tests(modules: list[str], *arguments: str, **variables: str) -> tuple[int, int, str]:
    """How many passed, how many did not, and what."""
    command = [sys.executable, "-m", "pytest", "-q", "-p"]
    command += ["tests.bridges.array_suites", "-p", "no:cacheprovider", "--tb=line", "-rfE"]
    command += [f"--rootdir={sysconfig.get_path('purelib')}"]  # else tests have no files
    done = subprocess.run(
        [*command, *arguments, "--pyargs", *modules],
        env={**os.environ, "TENON_ARRAY_SUITES": "1", **variables},
        capture_output=True,
        text=True,
    )
    counts = {what: int(n) for n, what in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
    if not counts:  # A suite that did not run, or found no test, has failed.
        return 0, 1, (done.stdout + done.stderr)[-600:]
    failed = dict(named(line) for line in done.stdout.splitlines() if _FAILED.match(line))
    known = known_failures(modules)
    told = [f"{name}: {why}" for name, why in failed.items() if name not in known]
    told += [f"passes: {name}: it leaves {KNOWN.name}" for name in known if name not in failed]
    if known:
        told.append(f"known failures: {len(known & failed.keys())}")
    wanted = counts.get("failed", 0) + counts.get("error", 0)
    unnamed = wanted - len(failed)  # A test may fail and have an error, too.
    return counts.get("passed", 0), max(unnamed, 0) + len(failed.keys() - known), "\n".join(told)


_FAILED = re.compile(r"(FAILED|ERROR) ")


def named(line: str) -> tuple[str, str]:
    """A test by its file in site-packages, and what it says, of a line of pytest's summary."""
    name, _, why = _FAILED.sub("", line).partition(" - ")
    return name.rpartition("site-packages/")[2], why


def known_failures(modules: list[str]) -> set[str]:
    """Tests of these modules that fail for a reason in the table."""
    files = tuple(f"{module.replace('.', '/')}" for module in modules)
    lines = (line.strip() for line in KNOWN.read_text().splitlines())
    return {line for line in lines if line.startswith(files)}


def einops() -> tuple[int, int, str]:
    return run_tests(["einops.tests.test_ops", "einops.tests.test_einsum", "einops.tests.test_packing",
                       "einops.tests.test_layers"], EINOPS_TEST_BACKENDS="tenon")  # fmt: skip


def counted(checks: dict[str, Callable[[], None]]) -> tuple[int, int, str]:
    failed = []
    for name, check in checks.items():
        try:
            check()
        except Exception as error:
            text = " ".join(str(error).split())[:150]
            failed.append(f"{name}: {type(error).__name__}: {text}")
    return len(checks) - len(failed), len(failed), "\n".join(failed)


def opt_einsum() -> tuple[int, int, str]:
    import numpy as np
    import opt_einsum
    import tenon
    from opt_einsum import helpers
    from opt_einsum.tests import test_contract

    def check(equation: str, strategy: str) -> Callable[[], None]:
        def run() -> None:
            views = helpers.build_views(equation)
            wanted = opt_einsum.contract(equation, *views, optimize=False)
            given = [tenon.tensor(each) for each in views]
            found = opt_einsum.contract(equation, *given, optimize=strategy)
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6, atol=1e-8)

        return run

    return counted(
        {
            f"{equation} {strategy}": check(equation, strategy)
            for equation in test_contract.tests
            for strategy in ("greedy", "optimal")
        }
    )


def scipy() -> tuple[int, int, str]:
    return run_tests(SCIPY, "-k", "array_api_strict", SCIPY_ARRAY_API='["array_api_strict"]')


def sklearn() -> tuple[int, int, str]:
    return run_tests(SKLEARN, "-k", "array_api_strict", SCIPY_ARRAY_API="1")


def beside_numpy(calls: dict[str, Callable[[Any], Any]]) -> tuple[int, int, str]:
    """Each call gets a namespace, and gives the same in both."""
    import numpy as np
    import tenon.array_api as xp

    def check(call: Callable[[Any], Any]) -> Callable[[], None]:
        def run() -> None:
            found, wanted = call(xp), call(np)
            pairs = (
                zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
            )
            for one, other in pairs:
                ours, theirs = np.asarray(one), np.asarray(other)
                # Numbers without a dtype are float32 here and float64 there.
                assert ours.dtype.kind == theirs.dtype.kind, f"{ours.dtype}, NumPy: {theirs.dtype}"
                np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)

        return run

    return counted({name: check(call) for name, call in calls.items()})


def array_api_extra() -> tuple[int, int, str]:
    from scipy._lib import array_api_extra as xpx

    def numbers(xp: Any, *shape: int) -> Any:
        count = 1
        for size in shape:
            count *= size
        return xp.reshape(xp.asarray([((7 * i) % 11) - 4.5 for i in range(count)]), shape)

    return beside_numpy(
        {
            "at set": lambda xp: xpx.at(numbers(xp, 5), 2).set(7.0),
            "at add": lambda xp: xpx.at(numbers(xp, 5))[1:3].add(2.0),
            "at mask": lambda xp: xpx.at(numbers(xp, 5), numbers(xp, 5) > 0).multiply(2.0),
            "at min": lambda xp: xpx.at(numbers(xp, 5), 0).min(-9.0),
            "apply_where": lambda xp: xpx.apply_where(
                numbers(xp, 6) > 0, numbers(xp, 6), lambda x: xp.log(x), lambda x: x * 2, xp=xp
            ),
            "atleast_nd": lambda xp: xpx.atleast_nd(numbers(xp, 3), ndim=3, xp=xp),
            "broadcast_shapes": lambda xp: xp.asarray(xpx.broadcast_shapes((2, 1), (3,))),
            "cov": lambda xp: xpx.cov(numbers(xp, 3, 5), xp=xp),
            "create_diagonal": lambda xp: xpx.create_diagonal(numbers(xp, 4), offset=1, xp=xp),
            "expand_dims": lambda xp: xpx.expand_dims(numbers(xp, 3, 2), axis=(0, 3), xp=xp),
            "isclose": lambda xp: xpx.isclose(numbers(xp, 5), numbers(xp, 5) + 1e-9, xp=xp),
            "kron": lambda xp: xpx.kron(numbers(xp, 2, 2), numbers(xp, 3, 1), xp=xp),
            "nunique": lambda xp: xpx.nunique(xp.asarray([1, 2, 2, 5]), xp=xp),
            "one_hot": lambda xp: xpx.one_hot(xp.asarray([1, 0, 2]), 3, xp=xp),
            "pad": lambda xp: xpx.pad(numbers(xp, 3), (1, 2), constant_values=4.0, xp=xp),
            "partition": lambda xp: xp.sort(xpx.partition(numbers(xp, 9), 4, xp=xp)[:4]),
            "setdiff1d": lambda xp: xpx.setdiff1d(xp.asarray([1, 2, 3]), xp.asarray([2]), xp=xp),
            "sinc": lambda xp: xpx.sinc(numbers(xp, 5), xp=xp),
        }
    )


def array_api_compat() -> tuple[int, int, str]:
    from scipy._lib import array_api_compat as compat

    def namespace(xp: Any) -> Any:
        return compat.array_namespace(xp.asarray([1.0]))

    return beside_numpy(
        {
            "array_namespace": lambda xp: namespace(xp).asarray([1.0, 2.0]),
            "is_array_api_obj": lambda xp: xp.asarray(compat.is_array_api_obj(xp.asarray(1.0))),
            "size": lambda xp: xp.asarray(compat.size(xp.ones((2, 3)))),
            "device and to_device": lambda xp: compat.to_device(
                xp.asarray([1.0]), compat.device(xp.asarray([1.0]))
            ),
            "is_writeable_array": lambda xp: xp.asarray(compat.is_writeable_array(xp.ones(2))),
            "is_lazy_array": lambda xp: xp.asarray(compat.is_lazy_array(xp.ones(2))),
            "not another's": lambda xp: xp.asarray(
                [
                    f(xp.ones(2))
                    for f in (compat.is_torch_array, compat.is_jax_array, compat.is_cupy_array)
                ]
            ),
        }
    )


SUITES: dict[str, Callable[[], tuple[int, int, str]]] = {
    "einops": einops,
    "opt_einsum": opt_einsum,
    "array_api_extra": array_api_extra,
    "array_api_compat": array_api_compat,
    "scipy": scipy,
    "sklearn": sklearn,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], default=[])
    parser.add_argument("--most", type=int, default=0, help="failures that are no error")
    options = parser.parse_args()
    total = 0
    for name in options.suites or SUITES:
        passed, failed, what = SUITES[name]()
        total += failed
        print(f"{name}: {passed} passed, {failed} failed", flush=True)
        if what:
            print("  " + what.replace("\n", "\n  "), flush=True)
    return 0 if total <= options.most else 1


if os.environ.get("TENON_ARRAY_SUITES"):
    stand_in()
if __name__ == "__main__":
    sys.exit(main())
