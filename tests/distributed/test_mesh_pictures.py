# SPDX-License-Identifier: Apache-2.0
"""Pictures of meshes, and those of the page."""

from pathlib import Path

import pytest
import tenon.distributed as dist
from tenon.distributed import Replicate, Shard
from tenon.distributed.mesh_drawing import svg_of, svg_of_tensor

IMAGES = Path(__file__).parents[2] / "docs" / "images"


def test_tables_and_pictures(tmp_path):
    with dist.fake(4, 2):
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        assert mesh.draw(tmp_path / "mesh.svg").splitlines() == [
            "mesh of dp 2 x tp 2",
            "      tp 0  tp 1",
            "dp 0  0     1",
            "dp 1  2     3",
        ]
        assert (tmp_path / "mesh.svg").read_text() == svg_of((2, 2), ("dp", "tp"), range(4))
        mesh.draw(tmp_path / "x.svg", [Shard(0), Replicate()], (6, 4))
        text = (tmp_path / "x.svg").read_text()
        assert "ranks 0, 1<" in text and "ranks 2, 3<" in text
        for options, match in (
            ((tmp_path / "mesh.png",), r"name ends in .svg"),
            ((tmp_path / "x.svg", [Shard(0), Replicate()]), "placements and shape, or none"),
            ((tmp_path / "x.svg", [Shard(0), Replicate()], (2, 2, 2)), "one or two axes"),
        ):
            with pytest.raises(ValueError, match=match):
                mesh.draw(*options)


def test_pictures_of_the_page():
    picture = svg_of((2, 2, 2), ("pp", "dp", "tp"), range(8))
    assert (IMAGES / "mesh_2x2x2.svg").read_text() == picture
    picture = svg_of_tensor((2, 2), range(4), [Shard(0), Replicate()], (6, 4))
    assert (IMAGES / "tensor_on_mesh.svg").read_text() == picture
