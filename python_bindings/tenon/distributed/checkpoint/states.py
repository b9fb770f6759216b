# SPDX-License-Identifier: Apache-2.0
"""What is saved and loaded: tensors by names that do not depend on how many ranks there are, and values.

Models give names to their parameters; the state of an optimizer has the name of its parameter, and lies where that lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import tenon
from tenon import Tensor
from tenon.nn import Module, Parameter
from tenon.optim import Optimizer

from ..data_parallel import DistributedDataParallel
from ..dtensor import DTensor, to_local
from ..fully_shard import ShardedParameter
from ..pipelines import Pipeline
from ..zero import ZeroRedundancyOptimizer
from .boxes import Box, Piece, whole
from .reader import Reader
from .sharded import part_of, read_sharded
from .values import decoded, encoded


@dataclass
class Found:
    """What one rank has. `first` names tensors of which the lowest rank's copy counts, `alike` those that stand in the state
    by themselves, of which nothing says that ranks have the same: they are compared."""

    pieces: dict[str, Piece] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    first: set[str] = field(default_factory=set)
    alike: set[str] = field(default_factory=set)

    def add(self, name: str, piece: Piece) -> None:
        if name in self.pieces or name in self.values:
            raise ValueError(f"checkpoint: expected different names, got two of {name!r}")
        self.pieces[name] = piece

    def add_value(self, name: str, value: Any) -> None:
        if name in self.pieces or name in self.values:
            raise ValueError(f"checkpoint: expected different names, got two of {name!r}")
        self.values[name] = encoded(value, name)


class Source:
    """A checkpoint that is being loaded, and what this rank has asked it for."""

    def __init__(self, reader: Reader) -> None:
        self.reader, self.asked = reader, set[str]()
        self.problems: list[str] = []
        self._actions: list[Callable[[], None]] = []  # what is changed once nothing is wrong

    def later(self, action: Callable[[], None]) -> None:
        self._actions.append(action)

    def finish(self) -> None:
        for action in self._actions:
            action()

    def names(self, prefix: str) -> list[str]:
        known = (*self.reader.manifest.tensors, *self.reader.manifest.values)
        return [name for name in known if name.startswith(prefix)]

    def value(self, name: str) -> Any:
        self.asked.add(name)
        if name not in self.reader.manifest.values:
            self.problems.append(f"missing: {name}")
            return None
        return decoded(self.reader.manifest.values[name])

    def fill(self, name: str, piece: Piece) -> None:
        """Overwrite a tensor, later."""
        self.asked.add(name)
        entry = self.reader.manifest.tensors.get(name)
        target = piece.tensor
        if entry is None:
            self.problems.append(f"missing: {name} (expected shape {piece.shape})")
        elif entry.shape != piece.shape:
            self.problems.append(f"{name}: expected shape {piece.shape}, got {entry.shape}")
        elif entry.dtype != target.dtype.name:
            self.problems.append(
                f"{name}: expected {target.dtype.name}, got {entry.dtype}; load into tensors of that dtype, and convert "
                "them then"
            )
        elif target.numel():
            self.later(lambda: _overwrite(target, self.reader.read(name, piece.box)))


def _overwrite(target: Tensor, value: Tensor) -> None:
    with tenon.no_grad():
        target.detach().copy_(value.to(target.device))


class Names:
    """Of parameters, in the models of a state; and of which larger parameter a tensor is a part."""

    def __init__(self, state: Any) -> None:
        self._names: dict[int, str] = {}
        self._keep: list[Any] = []
        for path, model in _models(state, ""):
            for name, param in model.named_parameters():
                self._names.setdefault(id(param), _join(path, name))
                self._keep.append(param)

    def of(self, param: Tensor) -> str:
        if id(param) not in self._names:
            raise ValueError(
                f"checkpoint: expected the model beside its optimizer, because states have the names of parameters, got a "
                f"parameter of shape {tuple(param.shape)} that no model in the state has"
            )
        return self._names[id(param)]


def _models(state: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(state, DistributedDataParallel):
        yield path, state.module
    elif isinstance(state, (Module, Pipeline)):
        yield path, state
    elif isinstance(state, Mapping):
        for key, value in state.items():
            yield from _models(value, _join(path, key))
    elif isinstance(state, (list, tuple)):
        for index, value in enumerate(state):
            yield from _models(value, _join(path, index))


def _parameters_of(model: Module | Pipeline) -> dict[str, Tensor]:
    """By all of their names: a parameter that is shared has several."""
    if isinstance(model, Pipeline):
        return dict(model.named_parameters())
    found: dict[str, Tensor] = {}
    for path, module in model._named_paths(""):
        for name, value in vars(module).items():
            if isinstance(value, Parameter):
                found[_join(path, name)] = value
    return found


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def collect(state: Any, path: str, names: Names, found: Found) -> None:
    """Everything in `state`, into `found`."""
    if isinstance(state, DistributedDataParallel):
        collect(state.module, path, names, found)
    elif isinstance(state, Piece):
        found.add(path, state)
    elif isinstance(state, Tensor):
        found.add(path, _replica(state))
        found.alike.add(path)
    elif isinstance(state, (Module, Pipeline)):
        own = _parameters_of(state)
        for name, tensor in state.state_dict().items():
            piece = _own_piece(tensor, own.get(name))
            if piece is not None:
                found.add(_join(path, name), piece)
            if name not in own:  # buffers may differ between ranks
                found.first.add(_join(path, name))
    elif isinstance(state, (Optimizer, ZeroRedundancyOptimizer)):
        _OptimizerState(state, path, names).collect(found)
    elif isinstance(state, Mapping) and (not path or not _is_value(state)):
        for key, value in state.items():
            collect(value, _join(path, key), names, found)
    elif isinstance(state, (list, tuple)) and not _is_value(state):
        for index, value in enumerate(state):
            collect(value, _join(path, index), names, found)
    elif hasattr(state, "state_dict"):
        collect(state.state_dict(), path, names, found)
    else:
        found.add_value(path, state)


def restore(state: Any, path: str, names: Names, source: Source) -> Any:
    """`state` with what the checkpoint has for it: tensors and objects are overwritten, values replaced."""
    if isinstance(state, DistributedDataParallel):
        restore(state.module, path, names, source)
        return state
    if isinstance(state, (Piece, Tensor)):
        source.fill(path, state if isinstance(state, Piece) else _replica(state))
        return state
    if isinstance(state, (Module, Pipeline)):
        own = _parameters_of(state)
        for name, tensor in state.state_dict().items():
            piece = _own_piece(tensor, own.get(name))
            if piece is None:
                source.asked.add(_join(path, name))
            else:
                source.fill(_join(path, name), piece)
        return state
    if isinstance(state, (Optimizer, ZeroRedundancyOptimizer)):
        _OptimizerState(state, path, names).restore(source)
        return state
    if isinstance(state, Mapping) and (not path or not _is_value(state)):
        return {
            key: restore(value, _join(path, key), names, source) for key, value in state.items()
        }
    if isinstance(state, (list, tuple)) and not _is_value(state):
        items = [restore(v, _join(path, i), names, source) for i, v in enumerate(state)]
        return items if isinstance(state, list) else tuple(items)
    if hasattr(state, "state_dict"):
        loaded = restore(state.state_dict(), path, names, source)
        source.later(lambda: state.load_state_dict(loaded))
        return state
    return source.value(path)


def _place(param: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape of the whole parameter, and where in it this one begins."""
    if isinstance(param, ShardedParameter):
        return param.whole_shape, param.offset
    return tuple(param.shape), (0,) * param.ndim


def _own_piece(tensor: Tensor, param: Tensor | None) -> Piece | None:
    """Of a parameter; None if this rank has no row of it."""
    if not isinstance(param, ShardedParameter):
        return _replica(tensor)
    if not param.numel():
        return None
    own = param.detach() if param.whole_shape else param.detach().reshape([])
    return Piece(own, param.whole_shape, param.offset)


def _replica(tensor: Tensor) -> Piece:
    """Of a sharded tensor this rank's part, which shares memory with it."""
    if isinstance(tensor, DTensor):
        whole_shape, offset = part_of(tensor)
        return Piece(to_local(tensor.detach()), whole_shape, offset)
    return Piece(tensor.detach(), tuple(tensor.shape), (0,) * tensor.ndim)


def _is_value(state: Any) -> bool:
    """Whether a container holds values alone: then it is one."""
    if isinstance(state, Mapping):
        return all(_is_value(value) for value in state.values())
    if isinstance(state, (list, tuple)):
        return all(_is_value(value) for value in state)
    return state is None or isinstance(state, (bool, int, float, str))


class _OptimizerState:
    """Of `path`: `path.state.NAME.KEY` for each parameter, and `path.groups`, the options."""

    def __init__(
        self, optimizer: Optimizer | ZeroRedundancyOptimizer, path: str, names: Names
    ) -> None:
        self._path = path
        if isinstance(optimizer, ZeroRedundancyOptimizer):
            self._inner = optimizer.inner
            self._places = {
                id(shard.mine): (names.of(shard.param), tuple(shard.param.shape), offset)
                for shard, offset in optimizer.own_offsets()
            }
        else:
            self._inner = optimizer
            self._places = {
                id(param): (names.of(param), *_place(param))
                for group in optimizer.param_groups
                for param in group["params"]
            }
        self._params = [param for group in self._inner.param_groups for param in group["params"]]

    def collect(self, found: Found) -> None:
        saved = self._inner.state_dict()
        for index, state in saved["state"].items():
            param = self._params[index]
            if not param.numel():  # this rank has no row of it
                continue
            name, shape, offset = self._places[id(param)]
            for key, value in state.items():
                full = f"{self._path}.state.{name}.{key}"
                if not isinstance(value, Tensor):
                    found.add_value(full, value)
                elif isinstance(value, DTensor):
                    found.add(full, _replica(value))
                elif value.ndim and tuple(value.shape[: param.ndim]) == tuple(param.shape):
                    # Complex numbers have their two parts as one more axis.
                    more = tuple(value.shape[param.ndim :])
                    own = value if shape or not param.ndim else value.reshape(list(more))
                    found.add(full, Piece(own, shape + more, offset + (0,) * len(more)))
                else:
                    found.add(full, _replica(value))
        options = [
            {key: value for key, value in group.items() if key != "params"}
            for group in saved["param_groups"]
        ]
        found.add_value(f"{self._path}.groups", options)

    def restore(self, source: Source) -> None:
        groups = source.value(f"{self._path}.groups")
        own = self._inner.param_groups
        if groups is None:
            return
        if not isinstance(groups, list) or len(groups) != len(own):
            source.problems.append(
                f"{self._path}: expected {len(own)} groups of parameters, got {len(groups)}"
            )
            return
        index, saved_groups = 0, []
        for group, options in zip(own, groups, strict=True):
            count = len(group["params"])
            saved_groups.append({**options, "params": list(range(index, index + count))})
            index += count
        wanted: list[tuple[int, str, Callable[[], Any]]] = []
        for index, param in enumerate(self._params):
            name = self._places[id(param)][0]
            prefix = f"{self._path}.state.{name}."
            for full in source.names(prefix):
                key = full.removeprefix(prefix)
                if "." not in key and param.numel():
                    wanted.append((index, key, self._reads(source, full, key, param)))
                elif "." not in key:
                    source.asked.add(full)

        def load() -> None:
            state: dict[int, dict[str, Any]] = {}
            for index, key, read in wanted:
                state.setdefault(index, {})[key] = read()
            self._inner.load_state_dict({"state": state, "param_groups": saved_groups})

        source.later(load)

    def _reads(self, source: Source, full: str, key: str, param: Tensor) -> Callable[[], Any]:
        if full in source.reader.manifest.values:
            value = source.value(full)
            return lambda: value
        source.asked.add(full)
        stored = source.reader.manifest.tensors[full].shape
        _, shape, offset = self._places[id(param)]
        more = stored[len(shape) :]
        has_shape = stored[: len(shape)] == shape
        if isinstance(param, DTensor) and has_shape and shape and key != "step":
            # Where the parameter lies.
            return lambda: read_sharded(
                lambda box: source.reader.read(full, box),
                stored,
                param.device_mesh,
                param.placements,
            )
        if key == "step" or not has_shape:
            return lambda: source.reader.read(full, whole(stored))
        if not shape and param.ndim:  # one row, as ZeRO counts a number
            return lambda: source.reader.read(full, whole(stored)).reshape([1, *more])
        box = Box(offset + (0,) * len(more), tuple(param.shape) + more)
        return lambda: source.reader.read(full, box)
