# SPDX-License-Identifier: Apache-2.0
"""Which blocks of the pools hold the keys and values of which tokens.

A sequence owns a `Table`: the blocks of its tokens in order. Full blocks are found again by later
sequences that begin with the same tokens, as in vLLM's automatic prefix caching (Kwon et al., 2023,
"PagedAttention"). The index compares the parent and the tokens themselves, so a collision of hashes
cannot hand out another prompt's keys. The cache moves no bytes: `admit` says what to copy.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field


class _Block:
    """One block: how many tables hold it, and what it holds once it is full and computed."""

    __slots__ = ("children", "key", "references")

    def __init__(self):
        self.references = 0
        self.key = None  # (parent, tokens) while the index names this block
        self.children = set()  # blocks of the index whose parent this is


@dataclass
class Table:
    """The blocks of one sequence.

    `cached` tokens were found at admission. If `copied_from` is a block, its content belongs in the
    block of token `cached - 1`: the engine copies it before the next step.
    """

    blocks: list[int] = field(default_factory=list)
    cached: int = 0
    copied_from: int | None = None
    salt: str = ""
    indexed: int = 0  # how many of the blocks the index knows


class BlockCache:
    """`blocks` blocks of `block_size` tokens; the first `reserved` are never handed out.

    Not safe for several threads: the engine's own thread is the only caller.
    """

    def __init__(self, blocks: int, block_size: int = 16, reserved: int = 0):
        if blocks <= reserved:
            raise ValueError(f"BlockCache: expected more than {reserved} blocks, got {blocks}")
        self.block_size = block_size
        self.reserved = reserved
        self._blocks = [_Block() for _ in range(blocks)]
        # In the order of eviction: blocks that the index does not know first, then the least recent.
        self._free = OrderedDict((block, None) for block in range(reserved, blocks))
        self._index: dict[tuple, int] = {}
        self._roots: dict[str, set[int]] = {}  # the first blocks of prompts, by salt
        self.hits = 0
        self.queries = 0

    @property
    def free(self) -> int:
        """How many blocks no sequence holds; the index may know them still."""
        return len(self._free)

    @property
    def used(self) -> int:
        return len(self._blocks) - self.reserved - len(self._free)

    def admit(self, tokens: list[int], salt: str = "") -> Table | None:
        """A table with the longest cached beginning of `tokens`, without the last one, which must
        be computed for its logits. None if there is no free block for a part that is copied.
        Only tables of the same `salt` share blocks."""
        size = self.block_size
        table = Table(salt=salt)
        usable = len(tokens) - 1
        parent: object = salt
        while (len(table.blocks) + 1) * size <= usable:
            start = len(table.blocks) * size
            block = self._index.get((parent, tuple(tokens[start : start + size])))
            if block is None:
                break
            self._take(block)
            table.blocks.append(block)
            parent = block
        start = table.cached = len(table.blocks) * size
        table.indexed = len(table.blocks)
        rest = tokens[start : min(start + size, usable)]
        source, rows = self._longest_beginning(parent, rest)
        if source is not None:
            self._take(source)  # so that the copy's own block is not this one
            copy = self._allocate()
            self._drop(source)
            if copy is None:
                self.release(table)
                return None
            table.blocks.append(copy)
            table.copied_from = source
            table.cached += rows
        self.queries += len(tokens)
        self.hits += table.cached
        return table

    def grow(self, table: Table, length: int) -> bool:
        """Give `table` room for `length` tokens. False, and nothing taken, if blocks are short."""
        missing = -(-length // self.block_size) - len(table.blocks)
        if missing > len(self._free):
            return False
        for _ in range(missing):
            table.blocks.append(self._allocate())
        return True

    def commit(self, table: Table, tokens: list[int], computed: int) -> None:
        """Let others find the blocks that the first `computed` of `tokens` fill.

        Where the index knows the same tokens already, the table takes that block and gives its own
        back, so that each block of the index has its parent in the index.
        """
        size = self.block_size
        while (table.indexed + 1) * size <= computed:
            place = table.indexed
            parent = table.blocks[place - 1] if place else table.salt
            key = (parent, tuple(tokens[place * size : (place + 1) * size]))
            known = self._index.get(key)
            own = table.blocks[place]
            if known is None:
                self._index[key] = own
                self._blocks[own].key = key
                self._siblings(parent).add(own)
            elif known != own:
                self._take(known)
                table.blocks[place] = known
                self._drop(own)
            table.indexed += 1

    def release(self, table: Table) -> None:
        """Give all blocks back, the deepest first, so that it is evicted before its parents."""
        for block in reversed(table.blocks):
            self._drop(block)
        table.blocks.clear()
        table.indexed = table.cached = 0

    def clear(self) -> None:
        """Forget what blocks that no sequence holds contain."""
        for block in list(self._free):
            self._forget(block)

    def check(self, tables: list[Table]) -> None:
        """Raise AssertionError unless references are uses, free and used blocks are all blocks, and
        each block of the index has its parent there. Costs time in the number of blocks."""
        uses = [0] * len(self._blocks)
        for table in tables:
            assert len(set(table.blocks)) == len(table.blocks), "a table holds a block twice"
            for block in table.blocks:
                uses[block] += 1
        for number, one in enumerate(self._blocks):
            assert one.references == uses[number], f"block {number}: references are not uses"
            is_free = number >= self.reserved and not one.references
            assert (number in self._free) == is_free, f"block {number}: wrong in the free list"
            for child in one.children:
                assert self._blocks[child].key[0] == number, f"block {child}: not its parent's"
        for key, number in self._index.items():
            assert self._blocks[number].key == key, f"block {number}: not its key"
            if isinstance(key[0], int):
                assert self._blocks[key[0]].key is not None, f"block {number}: lost its parent"
                assert self._blocks[key[0]].references >= bool(self._blocks[number].references)

    def _longest_beginning(self, parent, rest):
        best, rows = None, 0
        for block in self._siblings(parent) if rest else ():
            _, tokens = self._blocks[block].key
            common = 0
            while common < len(rest) and tokens[common] == rest[common]:
                common += 1
            if common > rows:
                best, rows = block, common
        return best, rows

    def _siblings(self, parent) -> set[int]:
        if isinstance(parent, int):
            return self._blocks[parent].children
        return self._roots.setdefault(parent, set())

    def _take(self, block):
        if not self._blocks[block].references:
            del self._free[block]
        self._blocks[block].references += 1

    def _drop(self, number):
        block = self._blocks[number]
        block.references -= 1
        if not block.references:
            self._free[number] = None
            if block.key is None:
                self._free.move_to_end(number, last=False)

    def _allocate(self):
        if not self._free:
            return None
        number = next(iter(self._free))
        self._forget(number)
        self._take(number)
        return number

    def _forget(self, number):
        block = self._blocks[number]
        if block.key is None:
            return
        for child in list(block.children):
            self._forget(child)
        parent = block.key[0]
        del self._index[block.key]
        block.key = None
        self._siblings(parent).discard(number)
        if not isinstance(parent, int) and not self._roots[parent]:
            del self._roots[parent]
