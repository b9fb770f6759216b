# SPDX-License-Identifier: Apache-2.0
"""A graph of PyTorch's, divided into parts that become programs and calls that stay with PyTorch."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from tenon.torch._walk import is_of_numbers


class Parts(NamedTuple):
    """The graph in which each part is one call of a submodule, and the submodules' names."""

    graph: Any
    names: list[str]


def divided(torch: Any, graph: Any, left: Collection[Any]) -> Parts:
    """The calls of `left` stay in the graph, and with them what makes numbers and what writes; all others go into parts, as
    large as the order of values allows. The given graph is not changed. Parts of a single call stay with PyTorch, whose call
    costs less than the way to a program. A graph that writes stays whole: moving calls could change what is read."""
    copied, moved = _copied(torch, graph)
    left = {moved[node] for node in left if node in moved}
    if any(_writes(torch, node) for node in copied.graph.nodes):
        return Parts(copied, [])
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from torch.fx.passes.operator_support import OperatorSupportBase

    class Told(OperatorSupportBase):  # type: ignore[misc]
        def is_node_supported(self, submodules: Mapping[str, Any], node: Any) -> bool:
            if node.target is operator.getitem:
                maker = node.args[0]
                return isinstance(maker, torch.fx.Node) and self.is_node_supported(
                    submodules, maker
                )
            return (
                node.op == "call_function" and node not in left and not is_of_numbers(node.target)
            )

    partitioner = CapabilityBasedPartitioner(copied, Told())
    fused = partitioner.fuse_partitions(partitioner.propose_partitions())
    names = [str(node.target) for node in fused.graph.nodes if node.op == "call_module"]
    return Parts(fused, names)


def _copied(torch: Any, graph: Any) -> tuple[Any, dict[Any, Any]]:
    moved: dict[Any, Any] = {}
    nodes = torch.fx.Graph()
    result = nodes.graph_copy(graph.graph, moved)
    output = next(node for node in graph.graph.nodes if node.op == "output")
    made = nodes.output(result)
    made.meta = dict(output.meta)
    return torch.fx.GraphModule(graph, nodes), moved


def _writes(torch: Any, node: Any) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable
