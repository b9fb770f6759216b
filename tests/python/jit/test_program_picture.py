# SPDX-License-Identifier: Apache-2.0
"""Pictures of programs: one node for each input, leaf and step, one edge for each value that a step reads."""

import re

import tenon


def read(dot):
    """Labels of the nodes in their order, and the edges between labels, with what they say."""
    labels = dict(re.findall(r'^  (\w+) \[label="((?:[^"\\]|\\.)*)"', dot, re.MULTILINE))
    labels["result"] = "result"
    edges = [
        (labels[a], labels[b], said)
        for a, b, said in re.findall(
            r'^  (\w+) -> (\w+)(?: \[label="([^"]*)"(?:, style=dashed)?\])?;', dot, re.MULTILINE
        )
    ]
    assert len(edges) == dot.count("->")
    return list(labels.values())[:-1], edges


def test_steps_and_what_they_read():
    weight = tenon.ones([2, 2])
    program = tenon.export(lambda x: (x @ weight).relu() + x, tenon.ones([2, 2]))
    nodes, edges = read(program.to_dot().replace("float32[2, 2] cpu:0", "T"))
    assert nodes == ["input T", "leaf T", "tenon::matmul", "tenon::relu", "tenon::add"]
    assert edges == [
        ("input T", "tenon::matmul", ""),
        ("leaf T", "tenon::matmul", ""),
        ("tenon::matmul", "tenon::relu", ""),
        ("tenon::relu", "tenon::add", ""),
        ("input T", "tenon::add", ""),
        ("tenon::add", "result", "4"),
    ]


def test_a_write_is_an_edge_of_its_own_and_a_value_is_read_once():
    state = tenon.zeros([2])

    def function(x):
        tenon.add(state, x, out=state)
        return state * state

    with tenon.no_grad():
        dot = tenon.export(function, tenon.ones([2])).to_dot()
    _, edges = read(dot)
    leaf, x = "leaf float32[2] cpu:0", "input float32[2] cpu:0"
    assert (leaf, "tenon::add", "writes") in edges and 'label="writes", style=dashed' in dot
    assert edges.count((x, "tenon::add", "")) == edges.count((leaf, "tenon::add", "")) == 1
    assert edges.count(("tenon::add", "tenon::multiply", "")) == 1  # the last one that wrote it


def test_leaves_have_their_names_and_constants_are_told():
    layer = tenon.nn.Linear(3, 2)
    program = tenon.export(layer, tenon.ones([1, 3]))
    nodes, _ = read(program.to_dot())
    assert r"leaf float32[2, 3] cpu:0 \"weight\"" in nodes
    assert r"leaf float32[2] cpu:0 \"bias\"" in nodes
    nodes, _ = read(program.freeze().to_dot())
    assert any(label.startswith("constant float32[2, 3] cpu:0") for label in nodes)


def test_sizes_that_calls_choose_are_named():
    n = tenon.jit.Dim("n", max=8)
    program = tenon.export(lambda x: x * 2, tenon.ones([3, 4]), dynamic_shapes=[{0: n}])
    assert read(program.to_dot())[0][0] == "input float32[n, 4] cpu:0"


def test_control_flow_is_one_node():
    def function(x):
        return tenon.jit.cond(x.sum() > 0, lambda x: x.exp() + 1, lambda x: x - 1, x)

    nodes, edges = read(tenon.export(function, tenon.ones([2])).to_dot())
    assert nodes.count("cond") == 1 and "tenon::exp" not in nodes
    assert ("cond", "result") in {edge[:2] for edge in edges}


def test_names_are_quoted():
    weight = tenon.ones([2])
    program = tenon.export(lambda x: x * weight, tenon.ones([2]))
    renamed = tenon.jit.Program(
        program._native.bind([None], ['a "b" \\ %9']), program._inputs, program._outputs
    )
    nodes, edges = read(renamed.to_dot())
    assert nodes[1] == r"leaf float32[2] cpu:0 \"a \"b\" \\ %9\""
    assert len(edges) == 3
