# SPDX-License-Identifier: Apache-2.0
"""Arguments and results as a JSON text and frames of bytes: nothing in them is code.

What JSON has no word for is an object with the key "$": tensors, bytes, tuples, dictionaries with other keys than texts,
dtypes, and references to what another process keeps. Other objects are pickled where both processes allow it.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tenon
from tenon import Tensor
from tenon._tensor.dtypes import DTYPES
from tenon.io import safetensors

from .errors import ProtocolError

_PLAIN = (type(None), bool, int, float, str)
_MOST_NDIM = 64


@dataclass
class Packed:
    text: bytes
    frames: list[memoryview]


class Packer:
    """`reference(value)` is the words for an object that stays where it is, or None."""

    def __init__(self, pickles: bool, reference: Callable[[Any], dict | None]) -> None:
        self._pickles, self._reference = pickles, reference

    def pack(self, value: Any) -> Packed:
        frames: list[memoryview] = []
        text = json.dumps(self._words(value, frames), separators=(",", ":"), ensure_ascii=False)
        return Packed(text.encode("utf-8", "surrogatepass"), frames)

    def _words(self, value: Any, frames: list[memoryview]) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is list:
            return [self._words(item, frames) for item in value]
        if kind is tuple:
            return {"$": "tuple", "of": [self._words(item, frames) for item in value]}
        if kind is dict:
            if "$" not in value and all(type(key) is str for key in value):
                return {key: self._words(item, frames) for key, item in value.items()}
            pairs = [
                [self._words(key, frames), self._words(item, frames)] for key, item in value.items()
            ]
            return {"$": "dict", "of": pairs}
        if kind in (bytes, bytearray):
            return {"$": "bytes", "frame": _add(frames, memoryview(value))}
        if isinstance(value, Tensor):
            return self._tensor(value, frames)
        if isinstance(value, tenon.dtype):
            return {"$": "dtype", "name": value.name}
        words = self._reference(value)
        if words is not None:
            return words
        if self._pickles:
            return {"$": "pickle", "frame": _add(frames, memoryview(pickle.dumps(value)))}
        raise TypeError(
            f"rpc: expected numbers, texts, bytes, tensors, lists, tuples and dictionaries, got {kind.__name__}; "
            "send what it consists of, or let all processes call init_rpc(pickles=True)"
        )

    def _tensor(self, value: Tensor, frames: list[memoryview]) -> dict[str, Any]:
        if value.layout != "strided":
            raise TypeError(
                f"rpc: expected a dense tensor, got one of layout {value.layout!r}; send its parts"
            )
        if value.requires_grad and tenon.is_grad_enabled():
            raise ValueError(
                "rpc: expected a tensor that requires no gradient, as none comes back from another process; "
                "send x.detach()"
            )
        return {
            "$": "tensor",
            "frame": _add(frames, safetensors.bytes_of(value)),
            "dtype": value.dtype.name,
            "shape": list(value.shape),
        }


def _add(frames: list[memoryview], data: memoryview) -> int:
    frames.append(data.cast("B") if data.nbytes else memoryview(b""))
    return len(frames) - 1


class Unpacker:
    """Believes nothing: a text from elsewhere is a value, or a ProtocolError."""

    def __init__(self, pickles: bool, reference: Callable[[dict], Any]) -> None:
        self._pickles, self._reference = pickles, reference

    def unpack(self, text: bytes, frames: Sequence[bytearray]) -> Any:
        try:
            words = json.loads(text.decode("utf-8", "surrogatepass"))
            return self._value(words, frames)
        except ProtocolError:
            raise
        except RecursionError:
            raise ProtocolError("rpc: a value is nested too deeply") from None
        except Exception as error:  # a pickle raises anything
            raise ProtocolError(f"rpc: a value cannot be read ({error!r:.200})") from None

    def _value(self, words: Any, frames: Sequence[bytearray]) -> Any:
        if type(words) is list:
            return [self._value(item, frames) for item in words]
        if type(words) is not dict:
            return words
        kind = words.get("$")
        if kind is None:
            return {key: self._value(item, frames) for key, item in words.items()}
        if kind == "tuple":
            return tuple([self._value(item, frames) for item in words["of"]])
        if kind == "dict":
            return {self._value(k, frames): self._value(v, frames) for k, v in words["of"]}
        if kind == "bytes":
            return bytes(_frame(words, frames))
        if kind == "tensor":
            return _tensor(words, frames)
        if kind == "dtype":
            return _dtype(words["name"])
        if kind == "pickle":
            if not self._pickles:
                raise ProtocolError(
                    "rpc: a pickle came, which may be any code; this process called init_rpc() without pickles=True"
                )
            return pickle.loads(_frame(words, frames))
        return self._reference(words)


def _frame(words: dict[str, Any], frames: Sequence[bytearray]) -> bytearray:
    index = words["frame"]
    if type(index) is not int or not 0 <= index < len(frames):
        raise ProtocolError(f"rpc: a value names frame {index!r:.40} of {len(frames)}")
    return frames[index]


def _dtype(name: Any) -> Any:
    if type(name) is not str or name not in DTYPES:
        raise ProtocolError(f"rpc: {name!r:.80} is no dtype")
    return getattr(tenon, name)


def _tensor(words: dict[str, Any], frames: Sequence[bytearray]) -> Tensor:
    frame, shape, dtype = _frame(words, frames), words["shape"], _dtype(words["dtype"])
    if type(shape) is not list or len(shape) > _MOST_NDIM:
        raise ProtocolError("rpc: expected the shape of a tensor as a list")
    count = 1
    for size in shape:
        if type(size) is not int or not 0 <= size < 1 << 48:
            raise ProtocolError(f"rpc: {size!r:.40} is no size of a tensor")
        count *= size
    if count * dtype.itemsize != len(frame):
        raise ProtocolError(
            f"rpc: a tensor {dtype.name} {shape} needs {count * dtype.itemsize} bytes, its frame has {len(frame)}"
        )
    if count == 0:
        return tenon.empty(shape, dtype=dtype)
    return safetensors.tensor_over(frame, dtype, tuple(shape), 0)
