# SPDX-License-Identifier: Apache-2.0
"""Tensors of strings: the bytes of all of them in one tensor, and where each begins in another, as in Apache Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import tenon
from tenon import Tensor

if TYPE_CHECKING:
    import numpy as np
else:
    from tenon._tensor import numpy as np


class StringTensor:
    """Strings of any length in a shape.

    `bytes` (uint8) is the UTF-8 text of all strings in row-major order, and `offsets` (int64, one more than strings)
    where each begins; both are ordinary tensors on one device. Strings are not changed in place. Comparison and
    everything that looks at bytes alone runs on the device; functions of characters run on the host.
    """

    def __init__(self, strings: Any = (), *, device: Any = None) -> None:
        array = np.asarray(strings, dtype=object)
        encoded = []
        for each in array.reshape(-1):
            if not isinstance(each, (str, bytes)):
                raise TypeError(
                    f"StringTensor: expected strings in nested lists of equal length, got {type(each).__name__}"
                )
            encoded.append(each.encode() if isinstance(each, str) else each)
        text = np.frombuffer(b"".join(encoded), np.uint8)
        ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        self.bytes: Tensor = tenon.tensor(text.copy(), device=device)
        self.offsets: Tensor = tenon.tensor(ends, device=device)
        self.shape: tuple[int, ...] = array.shape

    @classmethod
    def from_parts(
        cls, text: Tensor, offsets: Tensor, shape: Sequence[int] | None = None
    ) -> StringTensor:
        """Strings whose bytes and offsets are there already, which are shared."""
        count = offsets.shape[0] - 1 if offsets.ndim == 1 else -1
        if text.ndim != 1 or text.dtype != tenon.uint8 or offsets.dtype != tenon.int64 or count < 0:
            raise ValueError(
                "StringTensor: expected a vector of bytes (uint8) and one of offsets (int64), got "
                f"{text.dtype}{list(text.shape)} and {offsets.dtype}{list(offsets.shape)}"
            )
        ordered = bool((offsets[1:] >= offsets[:-1]).all().item()) if count else True
        if not ordered or offsets[0].item() < 0 or offsets[-1].item() > text.shape[0]:
            raise ValueError(
                f"StringTensor: expected offsets that grow from 0 to at most {text.shape[0]}"
            )
        made = cls.__new__(cls)
        made.bytes, made.offsets = text, offsets
        made.shape = (count,) if shape is None else _checked_shape(shape, count)
        return made

    # -- what it is ------------------------------------------------------------------------------------------
    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.offsets.shape[0] - 1

    @property
    def device(self) -> Any:
        return self.bytes.device

    @property
    def byte_lengths(self) -> Tensor:
        """The number of bytes of each string."""
        return (self.offsets[1:] - self.offsets[:-1]).reshape(list(self.shape))

    @property
    def lengths(self) -> Tensor:
        """The number of characters (code points) of each string."""
        # Bytes that go on with a character have the bits 10 in front.
        begins = ((self.bytes & 0xC0) != 0x80).to("int64")
        before = tenon.concat([begins.new_zeros([1]), begins.cumsum(0)], axis=0)
        return (before[self.offsets[1:]] - before[self.offsets[:-1]]).reshape(list(self.shape))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("StringTensor: a 0-d tensor has no length")
        return self.shape[0]

    def _encoded(self) -> list[bytes]:
        text, offsets = self.bytes.numpy().tobytes(), self.offsets.tolist()
        return [text[begin:end] for begin, end in zip(offsets, offsets[1:])]

    def numpy(self) -> np.ndarray:
        """The strings as an array of Python's strings (dtype object)."""
        array = np.empty(self.size, object)
        array[:] = [each.decode() for each in self._encoded()]
        return array.reshape(self.shape)

    def tolist(self) -> Any:
        return self.numpy().tolist()

    def item(self) -> str:
        if self.size != 1:
            raise ValueError(f"StringTensor: expected one string, got {self.size}")
        return self._encoded()[0].decode()

    def to(self, device: Any) -> StringTensor:
        return self.from_parts(self.bytes.to(device), self.offsets.to(device), self.shape)

    def reshape(self, shape: Sequence[int]) -> StringTensor:
        """The same strings in another shape, of which one extent may be -1; memory is shared."""
        return self.from_parts(self.bytes, self.offsets, shape)

    def __iter__(self) -> Iterator[StringTensor]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> StringTensor:
        """The strings that the same index takes from a tensor of numbers."""
        order = tenon.arange(self.size, device=self.device).reshape(list(self.shape))[index]
        taken = order.reshape([-1])
        begin, length = self.offsets[taken], self.offsets[taken + 1] - self.offsets[taken]
        offsets = tenon.concat([length.new_zeros([1]), length.cumsum(0)], axis=0)
        indices = tenon.arange(int(offsets[-1].item()), device=self.device)
        owner = tenon.searchsorted(offsets[1:], indices, right=True)
        text = self.bytes[begin[owner] + indices - offsets[owner]]
        return self.from_parts(text, offsets, order.shape)

    # -- comparison ------------------------------------------------------------------------------------------
    def _equal(self, other: Any) -> Tensor:
        if isinstance(other, (str, bytes)):
            other = StringTensor([other], device=self.device).reshape([])
        elif not isinstance(other, StringTensor):
            other = StringTensor(other, device=self.device)
        shape = tenon.broadcast_shapes(self.shape, other.shape)
        mine, theirs = (
            tenon.arange(each.size, device=self.device)
            .reshape(list(each.shape))
            .expand(list(shape))
            for each in (self, other)
        )
        mine, theirs = mine.reshape([-1]), theirs.reshape([-1])
        first, second = self.offsets[mine], other.offsets[theirs]
        length = self.offsets[mine + 1] - first
        same = length == other.offsets[theirs + 1] - second
        length = tenon.where(same, length, 0)
        ends = length.cumsum(0)
        total = int(ends[-1].item()) if ends.shape[0] else 0
        indices = tenon.arange(total, device=self.device)
        owner = tenon.searchsorted(ends, indices, right=True)
        within = indices - (ends - length)[owner]
        differs = self.bytes[first[owner] + within] != other.bytes[second[owner] + within]
        count = tenon.index_add(length * 0, owner, differs.to("int64"), 0)
        return (same & (count == 0)).reshape(list(shape))

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return self._equal(other)

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return ~self._equal(other)

    __hash__ = None  # type: ignore[assignment]

    # -- functions of strings --------------------------------------------------------------------------------
    def _ascii(self, first: int, change: int) -> StringTensor:
        moved = (self.bytes >= first) & (self.bytes < first + 26)
        text = tenon.where(moved, (self.bytes.to("int16") + change).to("uint8"), self.bytes)
        return self.from_parts(text, self.offsets, self.shape)

    def lower(self, ascii_only: bool = False) -> StringTensor:
        """With small letters. `ascii_only` changes A to Z alone, on the device."""
        return self._ascii(ord("A"), 32) if ascii_only else self.map(str.lower)

    def upper(self, ascii_only: bool = False) -> StringTensor:
        """With capital letters. `ascii_only` changes a to z alone, on the device."""
        return self._ascii(ord("a"), -32) if ascii_only else self.map(str.upper)

    def strip(self, characters: str | None = None) -> StringTensor:
        return self.map(lambda each: each.strip(characters))

    def map(self, function: Callable[[str], str]) -> StringTensor:
        """`function` of each string, on the host."""
        array = np.empty(self.size, object)
        array[:] = [function(each.decode()) for each in self._encoded()]
        return StringTensor(array.reshape(self.shape), device=self.device)

    def startswith(self, prefix: str) -> Tensor:
        return self._test(lambda each: each.startswith(prefix))

    def endswith(self, suffix: str) -> Tensor:
        return self._test(lambda each: each.endswith(suffix))

    def contains(self, part: str) -> Tensor:
        return self._test(lambda each: part in each)

    def _test(self, function: Callable[[str], bool]) -> Tensor:
        found = [function(each.decode()) for each in self._encoded()]
        return tenon.tensor(np.array(found, bool).reshape(self.shape), device=self.device)

    def lookup(self, vocabulary: Any, default: int = -1) -> Tensor:
        """The number of each string in a dict or a Vocabulary, int64; `default` if it has none."""
        get = vocabulary.get if hasattr(vocabulary, "get") else None
        if get is None:
            numbers = {word: number for number, word in enumerate(vocabulary)}
            get = numbers.get
        found = [get(each.decode(), default) for each in self._encoded()]
        return tenon.tensor(np.array(found, np.int64).reshape(self.shape), device=self.device)

    @staticmethod
    def concat(parts: Sequence[StringTensor]) -> StringTensor:
        """Several along their first axis."""
        if not parts or any(
            each.ndim == 0 or each.shape[1:] != parts[0].shape[1:] for each in parts
        ):
            raise ValueError(
                "StringTensor.concat: expected tensors that differ in the first axis alone, got shapes "
                f"{[each.shape for each in parts]}"
            )
        offsets, base = [parts[0].offsets[:1] * 0], 0
        for each in parts:
            offsets.append(each.offsets[1:] + base)
            base += each.bytes.shape[0]
        length = sum(each.shape[0] for each in parts)
        return StringTensor.from_parts(
            tenon.concat([each.bytes for each in parts], axis=0),
            tenon.concat(offsets, axis=0),
            [length, *parts[0].shape[1:]],
        )

    def __repr__(self) -> str:
        text = np.array2string(self.numpy(), separator=", ", prefix="StringTensor(", threshold=100)
        device = "" if str(self.device) == "cpu:0" else f", device='{self.device}'"
        return f"StringTensor({text}{device})"


def _checked_shape(shape: Sequence[int], count: int) -> tuple[int, ...]:
    try:
        return np.empty(count, bool).reshape(tuple(shape)).shape
    except ValueError:
        raise ValueError(
            f"StringTensor: expected a shape of {count} strings, got {list(shape)}"
        ) from None
