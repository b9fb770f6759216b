# SPDX-License-Identifier: Apache-2.0
"""Ranks as a grid: an axis for each way in which work is divided."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from typing import Any

from tenon import Tensor, _core

from .group import ProcessGroup
from .mesh_drawing import svg_of, svg_of_tensor, text_of, write
from .placements import Placement, placement_of, words_of
from .reshards import move
from .world import _thread_world, world

_meshes: dict[int, DeviceMesh] = {}


class DeviceMesh:
    """Ranks in a grid of one axis or more, and a group for each line of ranks along an axis.

    `mesh` is a nested list of ranks of the job. All ranks of the job make it together, in the same order; every one has to
    be in it. `mesh["tp"]` is the mesh of those axes alone that this rank is on.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Sequence[Any],
        *,
        mesh_dim_names: Sequence[str] | None = None,
    ) -> None:
        shape, ranks = _flattened(mesh)
        everyone = world()
        if sorted(ranks) != sorted(everyone.ranks):
            raise ValueError(
                f"DeviceMesh: expected each of the {everyone.size} ranks of the job once, got {list(mesh)}"
            )
        own = ranks.index(everyone.ranks[everyone.rank])
        coordinates: list[int] = []
        for size in reversed(shape):
            coordinates.insert(0, own % size)
            own //= size
        groups = [_line(everyone, ranks, shape, coordinates, axis) for axis in range(len(shape))]
        self._make(device_type, shape, coordinates, groups, mesh_dim_names, ranks)

    def _make(
        self,
        device_type: str,
        shape: Sequence[int],
        coordinates: Sequence[int],
        groups: list[ProcessGroup],
        names: Sequence[str] | None,
        ranks: list[int],
    ) -> None:
        if names is not None and (len(names) != len(shape) or len(set(names)) != len(names)):
            raise ValueError(
                f"mesh_dim_names: expected a name of its own for each of {len(shape)} axes, got {list(names)}"
            )
        self.device_type, self.shape = device_type, tuple(shape)
        self.mesh_dim_names = None if names is None else tuple(names)
        self._coordinates, self._groups, self._ranks = tuple(coordinates), groups, ranks
        self._parts: dict[tuple[str, ...], DeviceMesh] = {}
        self._id = _core.mesh_create(list(shape), list(coordinates), self._move)
        _meshes[self._id] = self
        if getattr(_thread_world, "group", None) is not None:
            _thread_world.meshes = [*getattr(_thread_world, "meshes", ()), self]

    def _move(
        self,
        axis: int,
        source: int,
        target: int,
        extent: int,
        local: Tensor,
        operator: str | None,
        has_rule: int,
    ) -> Tensor:
        return move(
            self._groups[axis],
            placement_of(source),
            placement_of(target),
            extent,
            local,
            operator,
            bool(has_rule),
        )

    def close(self) -> None:
        """Let go of the mesh. Tensors on it can be redistributed no longer."""
        for part in self._parts.values():
            part.close()
        _core.mesh_release(self._id)
        _meshes.pop(self._id, None)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def mesh(self) -> list[Any]:
        """The ranks, nested."""
        ranks: list[Any] = list(self._ranks)
        for size in reversed(self.shape[1:]):
            ranks = [ranks[i : i + size] for i in range(0, len(ranks), size)]
        return ranks

    @property
    def ranks(self) -> tuple[int, ...]:
        """Those of the job that are on it, the last axis first."""
        return tuple(self._ranks)

    def numel(self) -> int:
        return math.prod(self.shape)

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        names = (names,) if isinstance(names, str) else tuple(names)
        if names not in self._parts:
            axes = [self._axis(name) for name in names]
            part = object.__new__(DeviceMesh)
            ranks = [
                rank
                for rank, place in zip(
                    self._ranks, itertools.product(*map(range, self.shape)), strict=True
                )
                if all(
                    axis in axes or place[axis] == self._coordinates[axis]
                    for axis in range(self.ndim)
                )
            ]
            if axes != sorted(axes):
                raise NotImplementedError(
                    f"mesh[{names!r}]: expected axes in the order of the mesh, {self.mesh_dim_names}"
                )
            part._make(
                self.device_type,
                [self.shape[axis] for axis in axes],
                [self._coordinates[axis] for axis in axes],
                [self._groups[axis] for axis in axes],
                names,
                ranks,
            )
            self._parts[names] = part
        return self._parts[names]

    def _axis(self, dim: int | str | None) -> int:
        if dim is None:
            if self.ndim != 1:
                raise ValueError(f"expected the name of an axis of a mesh of {self.ndim}, got none")
            return 0
        if isinstance(dim, str):
            if self.mesh_dim_names is None or dim not in self.mesh_dim_names:
                raise KeyError(
                    f"expected one of the axes {self.mesh_dim_names} of the mesh, got {dim!r}"
                )
            return self.mesh_dim_names.index(dim)
        return range(self.ndim)[dim]

    # torch spells sizes of a mesh with this method; a mesh is no tensor.
    def size(self, mesh_dim: int | str | None = None) -> int:
        """Of one axis, or of all."""
        return self.numel() if mesh_dim is None else self.shape[self._axis(mesh_dim)]

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of the ranks along an axis that this rank is on."""
        return self._groups[self._axis(mesh_dim)]

    def get_coordinate(self) -> list[int]:
        return list(self._coordinates)

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        return self._coordinates[self._axis(mesh_dim)]

    def draw(
        self,
        file: str | os.PathLike | None = None,
        placements: Sequence[Placement] | None = None,
        shape: Sequence[int] | None = None,
    ) -> str:
        """The ranks as a table; with `file` ("mesh.svg") also as a picture. With `placements` and `shape` the picture is that
        of a tensor of one or two axes and of the ranks that have its parts."""
        names = self.mesh_dim_names or tuple(f"axis {axis}" for axis in range(self.ndim))
        if (placements is None) != (shape is None):
            raise ValueError("draw: expected placements and shape, or none of them, got one")
        if file is not None and placements is not None and shape is not None:
            if len(shape) not in (1, 2):
                raise ValueError(f"draw: expected a shape of one or two axes, got {tuple(shape)}")
            at = [placement_of(w) for w in words_of(placements, self.ndim, len(shape))[: self.ndim]]
            write(file, svg_of_tensor(self.shape, self._ranks, at, shape))
        elif file is not None:
            write(file, svg_of(self.shape, names, self._ranks))
        return text_of(self.shape, names, self._ranks)

    def __repr__(self) -> str:
        names = "" if self.mesh_dim_names is None else f", mesh_dim_names={self.mesh_dim_names}"
        return f"DeviceMesh('{self.device_type}', {self.mesh}{names})"


def init_device_mesh(
    device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None
) -> DeviceMesh:
    """A mesh of all ranks of the job, in order: the last axis is that of neighbours."""
    everyone = world()
    if math.prod(mesh_shape) != everyone.size or any(size < 1 for size in mesh_shape):
        raise ValueError(
            f"init_device_mesh: expected sizes whose product is {everyone.size}, the number of ranks, got "
            f"{tuple(mesh_shape)}"
        )
    ranks: list[Any] = list(everyone.ranks)
    for size in reversed(list(mesh_shape)[1:]):
        ranks = [ranks[i : i + size] for i in range(0, len(ranks), size)]
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)


def mesh_with(number: int) -> DeviceMesh:
    """The mesh of a sharded tensor, by the word that the tensor has."""
    if number not in _meshes:
        raise RuntimeError("expected a mesh that is in use, got one that was closed")
    return _meshes[number]


def number_of(mesh: DeviceMesh) -> int:
    return mesh._id


def _flattened(mesh: Sequence[Any]) -> tuple[list[int], list[int]]:
    if isinstance(mesh, Tensor):
        mesh = mesh.tolist()
    rows = list(mesh)
    if not rows or not isinstance(rows[0], list | tuple):
        return [len(rows)], [int(rank) for rank in rows]
    parts = [_flattened(row) for row in rows]
    if any(shape != parts[0][0] for shape, _ in parts):
        raise ValueError(f"DeviceMesh: expected rows of equal length, got {rows}")
    return [len(rows), *parts[0][0]], [rank for _, ranks in parts for rank in ranks]


def _line(
    everyone: ProcessGroup,
    ranks: list[int],
    shape: list[int],
    coordinates: list[int],
    axis: int,
) -> ProcessGroup:
    """The group of this rank along an axis. All ranks of the job call this."""
    if shape[axis] == everyone.size and ranks == list(everyone.ranks):
        return everyone
    color = 0
    for other, size in enumerate(shape):
        if other != axis:
            color = color * size + coordinates[other]
    if everyone._host is not None and not everyone._host.has_others:  # they say nothing
        cells = itertools.product(*map(range, shape))
        members = [
            everyone.ranks.index(rank)
            for rank, cell in zip(ranks, cells, strict=True)
            if all(p == coordinates[a] for a, p in enumerate(cell) if a != axis)
        ]
        line = everyone._part(members, None, color, coordinates[axis])
    else:
        line = everyone.split(color, coordinates[axis])
    assert line is not None
    return line
