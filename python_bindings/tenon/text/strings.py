# SPDX-License-Identifier: Apache-2.0
"""Tensors of strings: the bytes of all of them in one tensor, and where each begins in another, as in Apache Arrow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tenon
from tenon import Tensor

if TYPE_CHECKING:
    import numpy as np
else:
    from tenon._tensor import numpy as np


class StringTensor:
    """Strings of any length in a shape.

    `bytes` (uint8) is the UTF-8 text of all strings in row-major order, and `offsets` (int64 or int32, one more than
    strings) where each begins; both are ordinary tensors on one device, which the operators `text_*` take. Strings are
    not changed in place. Comparison and indexing run on the device, the other functions on the CPU.
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
        is_whole = offsets.dtype in (tenon.int64, tenon.int32)
        if text.ndim != 1 or text.dtype != tenon.uint8 or not is_whole or count < 0:
            raise ValueError(
                "StringTensor: expected a vector of bytes (uint8) and one of offsets (int64 or int32), got "
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
        return self.from_parts(*tenon.text_take(self.bytes, self.offsets, taken), order.shape)

    # -- comparison ------------------------------------------------------------------------------------------
    def _equal(self, other: Any) -> Tensor:
        if isinstance(other, (str, bytes)):
            other = StringTensor([other], device=self.device).reshape([])
        elif not isinstance(other, StringTensor):
            other = StringTensor(other, device=self.device)
        shape = tenon.broadcast_shapes(self.shape, other.shape)
        mine, theirs = (each._expanded(shape) for each in (self, other))
        same = tenon.text_equal(mine.bytes, mine.offsets, theirs.bytes, theirs.offsets)
        return tenon.expand(same, [math.prod(shape)]).reshape(list(shape))

    def _expanded(self, shape: Sequence[int]) -> StringTensor:
        """The strings as they count for a result of `shape`: one stands for all."""
        if self.size == 1 or self.shape == tuple(shape):
            return self
        numbers = tenon.arange(self.size, device=self.device).reshape(list(self.shape))
        taken = numbers.expand(list(shape)).reshape([-1])
        return self.from_parts(*tenon.text_take(self.bytes, self.offsets, taken))

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return self._equal(other)

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return ~self._equal(other)

    __hash__ = None  # type: ignore[assignment]

    # -- functions of strings --------------------------------------------------------------------------------
    def lower(self, ascii_only: bool = False) -> StringTensor:
        """With small letters, as Python's. `ascii_only` changes A to Z alone."""
        mode = "ascii" if ascii_only else "full"
        return self.from_parts(*tenon.text_lower(self.bytes, self.offsets, mode), self.shape)

    def upper(self, ascii_only: bool = False) -> StringTensor:
        """With capital letters, as Python's. `ascii_only` changes a to z alone."""
        mode = "ascii" if ascii_only else "full"
        return self.from_parts(*tenon.text_upper(self.bytes, self.offsets, mode), self.shape)

    def split(self, separator: str | None = None, limit: int = -1) -> tuple[StringTensor, Tensor]:
        """The parts between `separator`, or between runs of white space, of all strings one after the other, and how
        many each string has; after `limit` separators the rest is one part."""
        if separator == "":
            raise ValueError("StringTensor.split: expected a separator or None, got ''")
        text, offsets, counts = tenon.text_split(self.bytes, self.offsets, separator or "", limit)
        return self.from_parts(text, offsets), counts.reshape(list(self.shape))

    def hash(self, seed: int = 0) -> Tensor:
        """XXH64 of the bytes of each string, int64: of equal strings the same number, everywhere."""
        return tenon.text_hash(self.bytes, self.offsets, seed).reshape(list(self.shape))

    def strip(self, characters: str | None = None) -> StringTensor:
        return self.map(lambda each: each.strip(characters))

    def map(self, function: Callable[[str], str]) -> StringTensor:
        """`function` of each string, on the host."""
        array = np.empty(self.size, object)
        array[:] = [function(each.decode()) for each in self._encoded()]
        return StringTensor(array.reshape(self.shape), device=self.device)

    def find(self, part: str) -> Tensor:
        """Where `part` is first in each string, counted in characters; -1 where it is not."""
        return self._find(part, "anywhere")

    def startswith(self, prefix: str) -> Tensor:
        return self._find(prefix, "start") >= 0

    def endswith(self, suffix: str) -> Tensor:
        return self._find(suffix, "end") >= 0

    def contains(self, part: str) -> Tensor:
        return self._find(part, "anywhere") >= 0

    def _find(self, part: str, where: str) -> Tensor:
        found = tenon.text_find(self.bytes, self.offsets, part, where)
        return found.reshape(list(self.shape))

    def lookup(self, vocabulary: Any, default: int = -1) -> Tensor:
        """The number of each string in a dict, a Vocabulary or a list of strings, int64; `default` if it has none."""
        words = vocabulary if isinstance(vocabulary, StringTensor) else list(vocabulary)
        keys = words if isinstance(words, StringTensor) else StringTensor(words)
        keys = keys.to(self.device)
        found = tenon.text_lookup(self.bytes, self.offsets, keys.bytes, keys.offsets)
        if isinstance(vocabulary, Mapping):
            numbers = tenon.tensor(
                [*vocabulary.values(), default], dtype=tenon.int64, device=self.device
            )
            found = tenon.index_select(numbers, found, 0)
        elif default != -1:
            found = tenon.where(found < 0, default, found)
        return found.reshape(list(self.shape))

    # -- exchange --------------------------------------------------------------------------------------------
    @classmethod
    def from_arrow(cls, array: Any) -> StringTensor:
        """The strings of an array of pyarrow's, of type string or large_string and without nulls; memory is shared."""
        import pyarrow  # optional: only this exchange needs it

        if isinstance(array, pyarrow.ChunkedArray):
            array = array.combine_chunks()
        kinds = {pyarrow.string(): np.int32, pyarrow.large_string(): np.int64}
        if getattr(array, "type", None) not in kinds or array.null_count:
            raise TypeError(
                "StringTensor.from_arrow: expected an array of string or large_string without nulls, got "
                f"{getattr(array, 'type', type(array).__name__)} with {getattr(array, 'null_count', 0)} nulls"
            )
        _, ends, text = array.buffers()
        kind = kinds[array.type]
        if ends is None or not len(array):
            return cls([])
        offsets = np.frombuffer(ends, kind)[array.offset : array.offset + len(array) + 1]
        data = np.frombuffer(text, np.uint8) if text is not None else np.empty(0, np.uint8)
        return cls.from_parts(
            tenon.from_numpy(data),  # type: ignore[arg-type]
            tenon.from_numpy(offsets),  # type: ignore[arg-type]
        )

    def to_arrow(self) -> Any:
        """An array of pyarrow's of type large_string (string, where offsets are int32), which shares the memory of the
        CPU's tensors; axes but the first are lost."""
        import pyarrow  # optional: only this exchange needs it

        kind = pyarrow.large_string() if self.offsets.dtype == tenon.int64 else pyarrow.string()
        parts = [
            pyarrow.py_buffer(each.cpu().contiguous().numpy())
            for each in (self.offsets, self.bytes)
        ]
        return pyarrow.Array.from_buffers(kind, self.size, [None, *parts])

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
        texts, offsets, base = [], [parts[0].offsets[:1].to(tenon.int64) * 0], 0
        for each in parts:
            first, last = (int(each.offsets[i].item()) for i in (0, -1))
            texts.append(each.bytes[first:last])
            offsets.append(each.offsets[1:].to(tenon.int64) + (base - first))
            base += last - first
        length = sum(each.shape[0] for each in parts)
        return StringTensor.from_parts(
            tenon.concat(texts, axis=0),
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
