# SPDX-License-Identifier: Apache-2.0
"""Control flow over tensors in exported functions: variables, objects and memory that branches reach."""

import collections

import tenon
from program_agreement import X, agree, refused
from tenon import nn

counter = 0


def count():
    global counter
    counter += 1


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


def test_variables_of_other_functions():
    def function(x):
        turns = 0
        total = x * 0

        def bump(y):
            nonlocal turns, total
            turns += 1
            total = total + y

        if x.sum() > 0:
            bump(x)
        else:
            bump(x * 2)
            bump(x)
        return total, turns

    agree(function)


def test_globals():
    def function(x):
        global counter
        counter = 0
        if x.sum() > 0:
            count()
            count()
        else:
            counter = 7
        return x + counter

    agree(function)


def test_objects_with_slots_and_queues():
    def function(x):
        held, queue = Slotted(x), collections.deque([1])

        def put(y):
            held.value = y

        if x.sum() > 0:
            put(x * 2)
        return held.value, len(queue)

    agree(function)

    def grows(x):
        queue = collections.deque()
        if x.sum() > 0:
            queue.append(x)
        return x

    refused(grows, "`queue` is a deque where")


def test_iterators_are_refused():
    def function(x):
        values = iter([1, 2, 3])
        if x.sum() > 0:
            x = x + next(values)
        return x

    refused(function, "`values` is an iterator", NotImplementedError)


def test_memory_that_a_branch_hands_on():
    def reads(x, t):
        a, b = x * 2, x * 3
        c = a if t.sum() > 0 else b
        return c * 2, c + a

    agree(reads, X, X, values=[(X, X), (X, -X), (-X, X)])

    def writes_an_input(x):
        y = x if x.sum() > 0 else x * 2
        y += 1
        return y

    refused(writes_an_input, "a write at .* goes to what a branch or loop", NotImplementedError)

    def writes_what_is_read(x):
        a, b = x * 2, x * 3
        c = a if x.sum() > 0 else b
        c += 1
        return c, a + 1

    refused(writes_what_is_read, "a value is read at .* shared its memory", NotImplementedError)

    def writes_the_other(x):
        a, b = x * 2, x * 3
        if x.sum() > 0:
            c = a
        else:
            c = b
        a += 1
        return c

    refused(writes_the_other, "shared its memory", NotImplementedError)

    def writes_after_a_loop(x):
        y = x
        while y.abs().sum() < 10:
            y = y * 2 + 1
        y += 1
        return y

    refused(writes_after_a_loop, "a write at .* goes to what a branch or loop", NotImplementedError)

    def is_its_own(x):
        y = x * 1
        while y.abs().sum() < 10:
            y = y * 2 + 1
        y += 1
        z = y.clone() if x.sum() > 0 else y * 2
        z += 1
        return y, z

    agree(is_its_own)

    def by_hand(x):
        y = tenon.jit.cond(x.sum() > 0, lambda x: x, lambda x: x * 2, x)
        y += 1
        return y

    refused(by_hand, "a write at .* goes to what a branch or loop", NotImplementedError)


def test_views_of_what_a_branch_writes_into():
    def function(x):
        y = x.clone()
        if x.sum() > 0:
            y += 1
            z = y[:2]
        else:
            z = y[1:]
        return y, z

    agree(function)

    def then_writes(x):
        y = x.clone()
        if x.sum() > 0:
            y += 1
            z = y[:2]
        else:
            z = y[1:]
        z += 1
        return y, z

    refused(then_writes, "shared its memory", NotImplementedError)


def test_greedy_decoding():
    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.out = nn.Embedding(8, 3), nn.Linear(3, 8)

        def forward(self, h):
            tokens, n = tenon.zeros(6, dtype="int64"), 0
            for i in range(6):
                token = self.out(h).argmax()
                if token == 3:
                    break
                tokens[i] = token
                h = h * 0.5 + self.embedding(token)
                n += 1
            return tokens, n

    tenon.manual_seed(1)
    agree(Decoder())


def test_writes_in_branches_in_each_other():
    def function(x):
        y, s = tenon.zeros(4), x.sum()
        if s < 10:
            y += 1
            if s < 5:
                y[0] = s
                if x[0] > 0:
                    y[1] = s
        return y

    agree(function)


def test_a_list_that_is_returned_and_changed():
    def function(x):
        kept = [x + 1, x * 0]
        if x[1] > 0.5:
            return kept, x
        for _ in range(2):
            kept[1] = kept[1] + 1
        return kept, x

    agree(function)


def test_a_tensor_that_is_written_into_and_put_into_a_list():
    def function(x):
        a, kept = x * 1, [x + 1, x * 0]
        if x[2] < 2 or x.max() > 10:
            a += 1
            if a.sum() > 0:
                kept[0] = a
        return a, kept

    agree(function)


def test_rows_that_are_written_into_while_they_are_taken():
    def function(x):
        a, b, n = x * 1, x - 1, 0
        while n < 3 and a.sum() > b.sum():
            n += 1
            for row in a:
                b = b * 0.5 + row
                a += 1
        return a, b

    agree(function)
