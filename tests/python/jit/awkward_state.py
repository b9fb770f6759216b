# SPDX-License-Identifier: Apache-2.0
"""What awkward programs (awkward_programs.py) whose answer hangs on Python's state share."""


def changing(function, change):
    """`change(i)` runs before call i."""

    def driver(x, i):
        change(i)
        return function, x

    function.driver = driver
    return function


class Scaled:
    offset = 1.0

    def __init__(self, scale):
        self.scale = scale
        self.parts = [scale, scale + 1]

    def __call__(self, x):
        return x * self.scale + self.offset

    def method(self, x):
        return x * self.scale

    @property
    def doubled(self):
        return self.scale * 2

    def __len__(self):
        return int(self.scale)

    def __bool__(self):
        return self.scale > 2

    def __getitem__(self, key):
        return self.parts[key]
