# SPDX-License-Identifier: Apache-2.0
"""Writes the `.pt2` files that are kept here, which PyTorch 2.15 exported: tests/fuzz/saved_models.py damages them.

python tests/python/bridges/torch_models/make_models.py
"""

import io
import zipfile
from pathlib import Path

import torch


class Net(torch.nn.Module):
    """A buffer that is written, an open size, a keyword, results in a dictionary."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU()
        )
        self.head = torch.nn.Linear(12, 4)
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x, *, bias):
        self.count.add_(1)
        y = self.head(self.body(x).flatten(1))
        values, indices = (y + bias).max(1)
        return {"y": y[:, 1:], "rest": [values, indices, self.count]}


class Words(torch.nn.Module):
    """Integers as inputs, attention, a recurrent layer, several dtypes."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(11, 8)
        self.layer = torch.nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, norm_first=True)
        self.cells = torch.nn.LSTM(8, 4)

    def forward(self, tokens, indices):
        x = self.layer(self.table(tokens))
        y, (h, c) = self.cells(x)
        c = torch.where(c > 0, c, c.cumsum(0))
        return y.index_select(1, indices), h.sort(-1), c, x.to(torch.float64).topk(2)


def write(name, exported):
    """As PyTorch writes it, and compressed."""
    file = io.BytesIO()
    torch.export.save(exported, file)
    path = Path(__file__).with_name(f"{name}.pt2")
    with (
        zipfile.ZipFile(file) as old,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new,
    ):
        for entry in old.namelist():
            new.writestr(zipfile.ZipInfo(entry), old.read(entry), zipfile.ZIP_DEFLATED)


def main():
    torch.manual_seed(0)
    shapes = {"x": {0: torch.export.Dim("batch", max=8)}, "bias": None}
    images, bias = torch.randn(2, 2, 4, 4), {"bias": torch.randn(4)}
    net = torch.export.export(Net().eval(), (images,), bias, dynamic_shapes=shapes)
    write("net", net.run_decompositions())
    tokens = torch.randint(0, 11, (2, 5)), torch.tensor([0, 3])
    words = torch.export.export(Words().eval(), tokens)
    write("words", words.run_decompositions())


if __name__ == "__main__":
    main()
