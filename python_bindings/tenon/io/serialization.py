# SPDX-License-Identifier: Apache-2.0
"""save and load: tensors in safetensors files.

A file holds nothing that can run. A dict of tensors becomes a plain safetensors file that every
other reader understands. Anything nested (an optimizer's state dict) is flattened, and its
structure goes, as JSON, into the metadata. Files of PyTorch and Paddle are read, too, without
running what they hold.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from tenon import Tensor, _core
from tenon.io import safetensors, sharded
from tenon.io.foreign_files import kind_of, load_paddle, load_torch

_STRUCTURE = "tenon.structure"  # the metadata key
_TENSOR = "$tensor"  # {"$tensor": "name"} in the structure stands for a tensor
_COMPOSED = "$composed"  # {"$composed": {...}} for one that consists of others, which have names


def save(
    state: Any,
    path: str | os.PathLike,
    metadata: Mapping[str, str] | None = None,
    *,
    max_shard_size: int | str | None = None,
) -> None:
    """Write tensors, or dicts and lists of tensors, numbers, strings and None, to `path`.

    Keys of dicts are strings, numbers, None and tuples of them, and come back as they were.

    The file appears whole or not at all. Tensors on other devices are copied to the host.

    With `max_shard_size`, in bytes or as text ("5GB", "500MB"), more tensors than fit go into
    several files, `name-00001-of-00003.safetensors` and so on, beside an index,
    `name.safetensors.index.json`, as other tools write them. A tensor is never split.
    """
    tensors, metadata = flattened(state, metadata)
    if max_shard_size is None:
        safetensors.write(path, tensors, metadata)
    else:
        sharded.write(path, tensors, metadata, sharded.byte_count(max_shard_size))


def flattened(
    state: Any, metadata: Mapping[str, str] | None = None
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors by name, and metadata with the structure that they had."""
    metadata = dict(metadata or {})
    if _STRUCTURE in metadata:
        raise ValueError(
            f"save: expected metadata without the key {_STRUCTURE!r}, under which save itself "
            "writes; "
            "rename it"
        )
    if isinstance(state, Mapping) and all(
        isinstance(name, str) and isinstance(value, Tensor) and value.layout == "strided"
        for name, value in state.items()
    ):
        return dict(state), metadata
    tensors: dict[str, Tensor] = {}
    try:
        metadata[_STRUCTURE] = json.dumps(_flatten(state, "", tensors))
    except RecursionError:
        raise ValueError(
            "save: the containers lie too deep in others, or one contains itself; save a flat dict"
        ) from None
    return tensors, metadata


def load(path: str | os.PathLike, device: Any = None, *, memory_map: bool = False) -> Any:
    """Read what `save` wrote, any safetensors file, the index of several (`.index.json`), or a file
    of PyTorch (`.pt`, `.pth`) or Paddle (`.pdparams`, `.pdopt`).

    `memory_map=True` reads tensors from disk when they are first touched; changing one changes
    memory only, not the file. Of an index it gives a mapping that opens a file when one of its
    tensors is requested.

    Pickles in files of PyTorch and Paddle are read by a reader of Tenon's that imports and calls
    nothing: it knows tensors, containers, numbers and text, and refuses any other name with
    `tenon.safetensors.FormatError`. Their tensors do not require grad.
    """
    path = os.fspath(path)
    if path.endswith(".json"):
        tensors, metadata = sharded.read(path, memory_map=memory_map)
    else:
        kind = kind_of(path)
        if kind != "safetensors":
            state = load_torch(path, memory_map) if kind == "torch" else load_paddle(path)
            return state if device is None else _moved(state, device)
        tensors, metadata = safetensors.read(path, memory_map=memory_map)
    if device is not None:
        tensors = {name: tensor.to(device) for name, tensor in tensors.items()}
    if _STRUCTURE not in metadata:
        return tensors
    try:
        return _unflatten(json.loads(metadata[_STRUCTURE]), tensors)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path}: the structure in its metadata does not match its tensors ({error}); was it "
            "edited by another program?"
        ) from None


def _moved(value: Any, device: Any) -> Any:
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: _moved(item, device) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(item, device) for item in value)
    return value


def _flatten(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, Tensor) and value.layout != "strided":
        parts = enumerate(_core.parts_of(value))
        return {
            _COMPOSED: {
                "layout": value.layout,
                "shape": list(value.shape),
                "words": _core.words_of(value),
                "parts": [_flatten(part, _join(path, i), tensors)[_TENSOR] for i, part in parts],
            }
        }
    if isinstance(value, Tensor):
        name = _unused(path or "tensor", tensors)
        tensors[name] = value
        return {_TENSOR: name}
    if isinstance(value, Mapping):
        # Pairs, because JSON would turn integer keys into strings.
        return {
            "$dict": [
                [_key(key, path), _flatten(item, _join(path, key), tensors)]
                for key, item in value.items()
            ]
        }
    if isinstance(value, (list, tuple)):
        items = [_flatten(item, _join(path, index), tensors) for index, item in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if _is_plain(value):
        return value
    raise TypeError(
        f"save: expected tensors, numbers, strings, None and dicts or lists of them, got "
        f"{type(value).__name__} at {path or 'the top'!r}"
    )


def _unflatten(node: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(node, list):
        return [_unflatten(item, tensors) for item in node]
    if not isinstance(node, dict):
        return node
    ((kind, content),) = node.items()
    if kind == _TENSOR:
        return tensors[content]
    if kind == _COMPOSED:
        parts = [tensors[name] for name in content["parts"]]
        return _core.compose(content["layout"], content["shape"], parts, content["words"])
    if kind == "$tuple":
        return tuple(_unflatten(item, tensors) for item in content)
    if kind == "$dict":
        # Only a tuple is a node among keys; the rest stands for itself.
        return {_unflatten(key, {}): _unflatten(item, tensors) for key, item in content}
    raise ValueError(f"unknown node {kind!r}")


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _unused(path: str, tensors: Mapping[str, Tensor]) -> str:
    """The path as a name, or a longer one: the paths of {"a.b": x, "a": {"b": y}} are equal."""
    name, number = path, 1
    while name in tensors:
        number += 1
        name = f"{path}#{number}"
    return name


def _is_plain(value: Any) -> bool:
    """What JSON gives back as it was."""
    return value is None or isinstance(value, (bool, int, float, str))


def _key(key: Any, path: str) -> Any:
    """A key of a dict as the structure holds it; a tuple as the node that values have, too."""
    if _is_plain(key):
        return key
    if isinstance(key, tuple):
        return {"$tuple": [_key(part, path) for part in key]}
    raise TypeError(
        "save: expected keys of dicts to be strings, numbers, None or tuples of them, got "
        f"{type(key).__name__} {key!r} at {path or 'the top'!r}"
    )
