# SPDX-License-Identifier: Apache-2.0
"""tenon.llm.engine: blocks that sequences share, and which are given up first."""

import os
import random

import pytest
from tenon.llm.engine import BlockCache


def filled(cache, tokens, salt=""):
    table = cache.admit(tokens, salt)
    assert cache.grow(table, len(tokens))
    table.copied_from = None
    cache.commit(table, tokens, len(tokens))
    return table


def test_a_prefix_is_found_by_its_tokens():
    cache = BlockCache(20, 4)
    first = filled(cache, list(range(10)))
    second = cache.admit([*range(8), 50, 51])
    assert second.blocks == first.blocks[:2] and second.cached == 8
    # The last token is computed always, so a prompt that is all there shares one block less.
    third = cache.admit(list(range(8)))
    assert third.blocks[:1] == first.blocks[:1] and third.cached == 7
    cache.check([first, second, third])
    cache.release(first)
    cache.check([second, third])
    assert cache.admit([9, *range(1, 9)]).cached == 0  # the same block behind another parent


def test_prompts_that_part_inside_a_block_copy_its_beginning():
    cache = BlockCache(20, 4)
    first = filled(cache, [1, 2, 3, 4, 5, 6, 7, 8, 9])
    filled(cache, [1, 2, 3, 4, 5, 60, 7, 8, 9])
    table = cache.admit([1, 2, 3, 4, 5, 6, 70, 8, 9])
    assert table.cached == 6 and table.copied_from == first.blocks[1]
    assert table.blocks[0] == first.blocks[0] and table.blocks[1] != first.blocks[1]


def test_salts_keep_prefixes_apart():
    cache = BlockCache(20, 4)
    filled(cache, list(range(10)), "a")
    assert cache.admit(list(range(10)), "b").cached == 0
    assert cache.admit(list(range(10)), "a").cached == 8 + 1 - 1


def test_the_deepest_of_the_least_recent_goes_first():
    cache = BlockCache(6, 2)
    old, new = [1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]
    for tokens in (old, new):
        cache.release(filled(cache, tokens))
    assert cache.free == 6
    table = cache.admit([20, 21, 22])
    assert cache.grow(table, 3)  # two blocks: the ends of `old`
    assert cache.admit([*old, 0]).cached == 2
    assert cache.admit([*new, 0]).cached == 6


def test_two_that_compute_the_same_end_with_one_block():
    cache = BlockCache(20, 4)
    tokens = list(range(9))
    tables = [cache.admit(tokens) for _ in range(2)]
    for table in tables:
        assert cache.grow(table, 9)
    for table in tables:
        cache.commit(table, tokens, 9)
    assert tables[0].blocks[:2] == tables[1].blocks[:2] and cache.used == 4
    cache.check(tables)


def test_no_room():
    cache = BlockCache(4, 4, reserved=1)
    table = cache.admit([1] * 5)
    assert not cache.grow(table, 13) and table.blocks == []
    assert cache.grow(table, 12) and cache.free == 0 and 0 not in table.blocks
    with pytest.raises(ValueError, match="BlockCache: expected more than 1 blocks, got 1"):
        BlockCache(1, reserved=1)


def random_steps(steps, seed, check_every):
    """Random admissions, growth, forks, aborts and evictions; what a block holds is kept beside."""
    draw = random.Random(seed)
    cache = BlockCache(40, 4, reserved=2)
    held = {}  # what the rows of each block would hold: (beginning of the sequence, salt)
    live = []

    def write(table, tokens, start, end):
        for place in range(start, end):
            block = table.blocks[place // 4]
            content = held.setdefault(block, {})
            content[place % 4] = (table.salt, tuple(tokens[: place + 1]))

    for step in range(steps):
        choice = draw.random()
        if choice < 0.4 and len(live) < 8:
            if live and draw.random() < 0.5:  # a fork parts from a live one somewhere
                source, begin = draw.choice(live)
                tokens = begin[: draw.randint(1, len(begin))] + [draw.randrange(3)]
                salt = source.salt
            else:
                tokens = [draw.randrange(2) for _ in range(draw.randint(1, 24))]
                salt = draw.choice(["", "x"])
            table = cache.admit(tokens, salt)
            if table is not None:
                if table.copied_from is not None:
                    held[table.blocks[-1]] = dict(held[table.copied_from])
                for place in range(table.cached):  # what was found is what would have been computed
                    content = held[table.blocks[place // 4]][place % 4]
                    assert content == (salt, tuple(tokens[: place + 1]))
                if cache.grow(table, len(tokens)):
                    write(table, tokens, table.cached, len(tokens))
                    cache.commit(table, tokens, len(tokens))
                    live.append((table, tokens))
                else:
                    cache.release(table)
        elif choice < 0.8 and live:
            table, tokens = draw.choice(live)
            tokens.append(draw.randrange(2))
            if cache.grow(table, len(tokens)):
                write(table, tokens, len(tokens) - 1, len(tokens))
                cache.commit(table, tokens, len(tokens))
            else:
                tokens.pop()
        elif choice < 0.999 and live:
            table, _ = live.pop(draw.randrange(len(live)))
            cache.release(table)
        elif choice >= 0.999:
            cache.clear()
        if step % check_every == 0:
            cache.check([table for table, _ in live])
            for table, tokens in live:  # no other table has written into a block that is held
                for place in range(len(tokens)):
                    content = held[table.blocks[place // 4]][place % 4]
                    assert content == (table.salt, tuple(tokens[: place + 1]))
    assert cache.hits > cache.queries / 4
    for table, _ in live:
        cache.release(table)
    assert cache.used == 0


def test_random_steps_keep_the_invariants():
    many = os.environ.get("TENON_TEST_EXHAUSTIVE") == "1"
    random_steps(1_000_000 if many else 10_000, seed=0, check_every=20)
