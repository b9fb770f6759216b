# SPDX-License-Identifier: Apache-2.0
"""A rank that mpirun started: the cases of test_calls.py that are for two ranks, in the group of all of them. Run by
test_mpi.py, which reads the names that are printed."""

import sys

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
import test_calls


class _OfAnotherSize(Exception):
    """The case is for more ranks than there are."""


def in_ranks(size, work, **options):
    """As that of test_calls, where ranks are threads."""
    if size != dist.get_world_size() or options:
        raise _OfAnotherSize
    return dist.all_gather_object(work())


def run(name):
    """The case with each of its parameters; how many were for two ranks."""
    test, count = getattr(test_calls, name), 0
    sets = [{}]
    for mark in getattr(test, "pytestmark", []):
        names = [part.strip() for part in mark.args[0].split(",")]
        sets = [
            {**known, **dict(zip(names, values if len(names) > 1 else [values], strict=True))}
            for known in sets
            for values in mark.args[1]
        ]
    for parameters in sets:
        if parameters.get("transport") == "tcp" or parameters.get("size", 2) != 2:
            continue
        with pytest.MonkeyPatch.context() as patch:
            if "monkeypatch" in test.__code__.co_varnames[: test.__code__.co_argcount]:
                parameters["monkeypatch"] = patch
            try:
                test(**parameters)
            except _OfAnotherSize:
                continue
        count += 1
    return count


def sizes():
    """None, and more than fits between two ranks; sums to the bit in the order of ranks."""
    for count in (0, 1, 1025, 1_500_001):
        x = tenon.tensor((np.arange(count) % 1000 + 0.1 + dist.get_rank()).astype("f4"))
        both = np.arange(count) % 1000
        expected = (both + 0.1).astype("f4") + (both + 1.1).astype("f4")
        np.testing.assert_array_equal(dist.all_reduce(x.clone()).numpy(), expected)
        got = dist.all_gather_into_tensor(tenon.empty([2 * count]), x).numpy()
        np.testing.assert_array_equal(got[count * dist.get_rank() :][:count], x.numpy())


def groups():
    own = dist.world().split(dist.get_rank())  # of one rank; the other has another at the same time
    turned = dist.new_group([1, 0])
    assert own.size == 1 and own.all_reduce(tenon.ones([1])).tolist() == [1.0]
    for _ in range(20):  # communicators are freed, and their numbers used again
        again = turned.part([0, 1])
        assert again.all_reduce(tenon.ones([3])).tolist() == [2.0] * 3
        again.close()
    assert turned.broadcast(tenon.full([2], float(dist.get_rank())), 0).tolist() == [1.0, 1.0]


def wrong_arguments():
    with pytest.raises(ValueError, match="rank"):
        dist.broadcast(tenon.ones([1]), 2)
    with pytest.raises(TypeError, match="has no meaning; convert the tensor first"):
        dist.all_reduce(tenon.ones([2]).to("bool"))
    with pytest.raises(RuntimeError, match="expected no group of all ranks, got one"):
        dist.init_process_group("mpi")


def meets_again():
    dist.destroy_process_group()
    dist.init_process_group("mpi", timeout=30.0)
    assert dist.all_reduce(tenon.ones([2])).tolist() == [2.0, 2.0]


CASES = """
test_every_call test_dtypes_are_reduced_as_themselves test_dtypes_that_are_moved_only
test_works_go_on_by_themselves test_a_ring_that_sends_before_it_receives
""".split()


def main():
    test_calls.in_ranks = in_ranks
    dist.init_process_group("mpi", timeout=30.0)
    ran = {name: run(name) for name in CASES}
    for case in (sizes, groups, wrong_arguments, meets_again):
        case()
        ran[case.__name__] = 1
    if dist.get_rank() == 0:
        print(" ".join(f"{name}:{count}" for name, count in ran.items()))


if __name__ == "__main__":
    sys.exit(main())
