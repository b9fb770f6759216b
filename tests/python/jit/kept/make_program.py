# SPDX-License-Identifier: Apache-2.0
"""Writes the program that tests/python/jit/test_programs.py keeps. So that the file names no folder, run it as

    python -c "exec(compile(open('make_program.py').read(), 'make_program.py', 'exec'))" program_1.tenon

A file that a release wrote stays as it is; later versions have to read it.
"""

import sys

import tenon
from tenon import nn


def main(path):
    tenon.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))

    def function(x, n):
        y = model(x) * tenon.tensor([2.0, 0.5])
        y = tenon.jit.cond(y.sum() > 0, lambda y: y, lambda y: y * 3, y)
        y = tenon.jit.while_loop(
            lambda k, y: k < n, lambda k, y: (k + 1, y / 2), (tenon.tensor(0), y)
        )[1]
        return {"y": y.softmax(-1), "row": y[0]}

    with tenon.no_grad():
        tenon.export(function, (tenon.ones(2, 3), tenon.tensor(2))).save(path)


if __name__ == "__main__":
    main(sys.argv[1])
