# SPDX-License-Identifier: Apache-2.0
"""Tensors of which every rank of a mesh has a part. They are tenon.Tensor of layout 'sharded'; operators take them, and
what happens then follows from the operators' definitions (plugins/sharding)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor, _core, autograd
from tenon._tensor import printing

from . import between_meshes
from .mesh import DeviceMesh, mesh_with, number_of
from .placements import (
    Partial,
    Placement,
    Replicate,
    Shard,
    part_of_whole,
    placement_of,
    words_of,
)

_KIND = "sharded"


class _Sharded(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.layout == _KIND


class DTensor(metaclass=_Sharded):
    """What `isinstance` and type annotations call a tensor of layout 'sharded'; there are no other objects."""

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh,
        placements: Sequence[Placement],
        *,
        shape: Sequence[int] | None = None,
    ) -> Tensor:
        """As dist.from_local."""
        return from_local(local_tensor, device_mesh, placements, shape=shape)


def from_local(
    local_tensor: Tensor,
    device_mesh: DeviceMesh,
    placements: Sequence[Placement],
    *,
    shape: Sequence[int] | None = None,
) -> Tensor:
    """The whole of which every rank gives its part; nothing is copied. Without `shape` ranks tell each other how long their
    parts are. Gradients pass."""
    words = words_of(placements, device_mesh.ndim, local_tensor.ndim)
    if shape is None:
        shape = _whole_shape(local_tensor, device_mesh, words)
    return _FromLocal.apply(local_tensor, device_mesh, words, list(shape))


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Tensor:
    """The tensor of the first rank of the mesh, of which every rank keeps its part. With `src_data_rank=None` every rank
    takes its part of its own tensor, which has to be the same everywhere. A leaf; it requires a gradient if `tensor` does.
    """
    placements = [Replicate()] * device_mesh.ndim if placements is None else placements
    words = words_of(placements, device_mesh.ndim, tensor.ndim)
    if any(isinstance(placement, Partial) for placement in placements):
        raise ValueError(
            f"distribute_tensor: expected Shard(dim) or Replicate(), got {list(placements)}; "
            "from_local takes the parts of a sum"
        )
    if src_data_rank not in (0, None):
        raise NotImplementedError(
            f"distribute_tensor: expected src_data_rank 0 or None, got {src_data_rank}"
        )
    with tenon.no_grad():
        whole = tensor.detach()
        if src_data_rank == 0 and tensor.numel():
            whole = whole.clone().contiguous()
            for axis in range(device_mesh.ndim):
                device_mesh.get_group(axis).broadcast(whole, 0)
        part = whole
        for word, size, own in zip(
            words, device_mesh.shape, device_mesh.get_coordinate(), strict=True
        ):
            if word & 255 == 1:
                dim = word >> 8
                begin = part.shape[dim] * own // size
                end = part.shape[dim] * (own + 1) // size
                part = tenon.narrow(part, dim, begin, end - begin)
        made = _core.shard_tensor(
            number_of(device_mesh), list(tensor.shape), part.clone().contiguous(), words
        )
    return made.requires_grad_(tensor.requires_grad)


def redistribute(
    self: Tensor,
    device_mesh: DeviceMesh | Sequence[Placement] | None = None,
    placements: Sequence[Placement] | None = None,
) -> Tensor:
    """The same tensor in other placements, on the same mesh or another one of the same ranks, or of some of them, such as
    mesh["tp"]. Gradients come back in the placements of this one, from a mesh of fewer ranks not at all: that is an error.
    """
    mesh = _mesh_of(self, "redistribute")
    if placements is None and not isinstance(device_mesh, DeviceMesh):
        device_mesh, placements = None, device_mesh
    if placements is None:
        raise ValueError("redistribute: expected placements, got none")
    if isinstance(device_mesh, DeviceMesh) and device_mesh is not mesh:
        between_meshes.expect_ranks(mesh, device_mesh)
        words = words_of(placements, device_mesh.ndim, self.ndim)
        if any(isinstance(placement, Partial) for placement in placements):
            raise ValueError(
                f"redistribute: expected Shard(dim) or Replicate() on another mesh, got {list(placements)}"
            )
        return _ToMesh.apply(self, device_mesh, words)
    return _Redistribute.apply(self, words_of(placements, mesh.ndim, self.ndim))


def to_local(self: Tensor, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
    """This rank's part, which shares memory with the tensor. Its gradient is taken for a part of the whole's in
    `grad_placements`, by default those of the tensor, with Replicate() for Partial()."""
    mesh = _mesh_of(self, "to_local")
    words = _words(self)
    grad_words = (
        _gradient_words(words)
        if grad_placements is None
        else words_of(grad_placements, mesh.ndim, self.ndim)
    )
    return _ToLocal.apply(self, grad_words)


def full_tensor(self: Tensor) -> Tensor:
    """The whole, as a plain tensor, on every rank."""
    mesh = _mesh_of(self, "full_tensor")
    return to_local(redistribute(self, placements=[Replicate()] * mesh.ndim))


def placements_of(tensor: Tensor) -> tuple[Placement, ...]:
    mesh = _mesh_of(tensor, "placements", AttributeError)
    return tuple(placement_of(word) for word in _words(tensor)[: mesh.ndim])


def local_map(
    func: Any,
    out_placements: Sequence[Placement],
    in_placements: Sequence[Sequence[Placement] | None],
    device_mesh: DeviceMesh | None = None,
) -> Any:
    """func on the parts of this rank, past all rules: its sharded arguments are brought to `in_placements` (None: plain
    arguments), and what it returns is a part of a whole in `out_placements`."""

    def call(*args: Any) -> Tensor:
        mesh = device_mesh
        parts = []
        for arg, wanted in zip(args, in_placements, strict=True):
            if wanted is not None:
                mesh = mesh or _mesh_of(arg, "local_map")
                arg = to_local(redistribute(arg, placements=wanted))
            parts.append(arg)
        if mesh is None:
            raise ValueError("local_map: expected a sharded argument or device_mesh")
        return from_local(func(*parts), mesh, out_placements)

    return call


def format_sharded(self: Tensor) -> str:
    """Of this rank: the text of repr()."""
    mesh = mesh_with(_core.words_of(self)[0])
    local = repr(_core.parts_of(self)[0].detach()).replace("\n", "\n" + " " * 8)
    notes = f"shape={tuple(self.shape)}, placements={placements_of(self)}, mesh={mesh!r}"
    grad = ", requires_grad=True" if self.requires_grad else ""
    return f"DTensor({local},\n        {notes}{grad})"


# -- gradients


class _FromLocal(autograd.Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, mesh: DeviceMesh, words: list[int], shape: Any) -> Tensor:
        ctx.words = _gradient_words(words)
        return _core.shard_tensor(number_of(mesh), list(shape), local.detach(), words)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        if grad.layout == _KIND:
            grad = _ToLocal.apply(_Redistribute.apply(grad, ctx.words), ctx.words)
        return grad, None, None, None


class _Redistribute(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, words: list[int]) -> Tensor:
        ctx.words = _gradient_words(_words(x))
        return _core.redistribute_tensor(x.detach(), words)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return (_Redistribute.apply(grad, ctx.words) if grad.layout == _KIND else grad), None


class _ToMesh(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, mesh: DeviceMesh, words: list[int]) -> Tensor:
        ctx.mesh, ctx.words = mesh_with(_core.words_of(x)[0]), _gradient_words(_words(x))
        return _to_mesh(x, mesh, words)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        if grad.layout == _KIND:
            between_meshes.expect_ranks(mesh_with(_core.words_of(grad)[0]), ctx.mesh)
            grad = _ToMesh.apply(grad, ctx.mesh, ctx.words)
        return grad, None, None


def _to_mesh(x: Tensor, mesh: DeviceMesh, words: Sequence[int]) -> Tensor:
    with tenon.no_grad():
        source = mesh_with(_core.words_of(x)[0])
        have = _gradient_words(_words(x))
        whole = x.detach() if have == _words(x) else _core.redistribute_tensor(x.detach(), have)
        local = between_meshes.moved(
            _core.parts_of(whole)[0],
            tuple(x.shape),
            source,
            [placement_of(word) for word in have[: source.ndim]],
            mesh,
            [placement_of(word) for word in words[: mesh.ndim]],
        )
        return _core.shard_tensor(number_of(mesh), list(x.shape), local, list(words))


class _ToLocal(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, grad_words: list[int]) -> Tensor:
        ctx.mesh, ctx.words, ctx.shape = mesh_with(_core.words_of(x)[0]), grad_words, tuple(x.shape)
        ctx.is_whole = not any(_words(x)) and not any(grad_words)
        return _core.parts_of(x)[0].detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        if grad.layout == _KIND:
            # The plain tensor stood beside sharded ones, where it counts as Replicate().
            if not ctx.is_whole or mesh_with(_core.words_of(grad)[0]) is not ctx.mesh:
                raise ValueError(
                    "to_local: expected operators with plain tensors behind it, because this rank's part is not the whole "
                    "of every rank, got one with a sharded tensor; use the sharded tensor there"
                )
            return _Redistribute.apply(grad, ctx.words), None
        return _FromLocal.apply(grad, ctx.mesh, ctx.words, ctx.shape), None


def _gradient_words(words: Sequence[int]) -> list[int]:
    """Each summand of a sum has the gradient of the whole."""
    return [0 if word & 255 == 2 else word for word in words]


# -- what a tensor says


def part_of(tensor: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of a sharded tensor: where this rank's part begins, and its shape."""
    mesh = _mesh_of(tensor, "part_of")
    at = placements_of(tensor)
    return part_of_whole(tuple(tensor.shape), at, mesh.shape, mesh.get_coordinate())


def local_of(tensor: Tensor) -> Tensor:
    """This rank's part of a sharded tensor, without a gradient, and a plain one as it is: what other calls than operators
    read and write."""
    return _core.parts_of(tensor)[0].detach() if isinstance(tensor, DTensor) else tensor


def _words(tensor: Tensor) -> list[int]:
    return list(_core.words_of(tensor)[1:9])


def _mesh_of(tensor: Tensor, what: str, error: type[Exception] = TypeError) -> DeviceMesh:
    if not isinstance(tensor, Tensor) or tensor.layout != _KIND:
        got = f"layout {tensor.layout}" if isinstance(tensor, Tensor) else type(tensor).__name__
        raise error(f"{what}: expected a tensor of layout sharded, got {got}")
    return mesh_with(_core.words_of(tensor)[0])


def _whole_shape(local: Tensor, mesh: DeviceMesh, words: list[int]) -> list[int]:
    """The lengths of all ranks' parts, added up; refused on all ranks if one of them is cut in another way."""
    shape = list(local.shape)
    # The last axis of the mesh cut last, and comes together first.
    for axis in reversed(range(mesh.ndim)):
        if words[axis] & 255 != 1:
            continue
        dim, group = words[axis] >> 8, mesh.get_group(axis)
        told = group.all_gather(
            tenon.tensor([shape[dim]], dtype=tenon.int64, device="cpu")
        ).tolist()
        shape[dim] = total = sum(told)
        expected = [
            total * (r + 1) // group.size - total * r // group.size for r in range(group.size)
        ]
        if told != expected:
            raise ValueError(
                f"from_local: expected parts of {expected} elements along axis {dim} of a whole of {total}, got {told}; "
                "rank r of n has those from size * r // n to size * (r + 1) // n"
            )
    return shape


def is_even(size: int, mesh: DeviceMesh) -> bool:
    """Whether all ranks have as many elements of an axis that is cut."""
    return size % math.prod(mesh.shape) == 0


_core.add_tensor_attributes(
    {
        "to_local": to_local,
        "full_tensor": full_tensor,
        "redistribute": redistribute,
        "placements": property(
            placements_of, doc="Of a sharded tensor: one for each axis of its mesh."
        ),
        "device_mesh": property(
            lambda tensor: _mesh_of(tensor, "device_mesh", AttributeError),
            doc="Of a sharded tensor.",
        ),
    }
)
printing.formats[_KIND] = format_sharded

__all__ = ["DTensor", "Shard", "distribute_tensor", "from_local", "local_map"]
