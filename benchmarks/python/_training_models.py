# SPDX-License-Identifier: Apache-2.0
"""Models for training_steps.py, written once: `n` is tenon.nn or torch.nn."""

from __future__ import annotations


def mlp(n):
    return n.Sequential(n.Linear(784, 256), n.ReLU(), n.Linear(256, 10))


def lenet(n):
    return n.Sequential(
        n.Conv2d(1, 6, 5, padding=2),
        n.ReLU(),
        n.MaxPool2d(2),
        n.Conv2d(6, 16, 5),
        n.ReLU(),
        n.MaxPool2d(2),
        n.Flatten(),
        n.Linear(400, 120),
        n.ReLU(),
        n.Linear(120, 84),
        n.ReLU(),
        n.Linear(84, 10),
    )


def resnet18(n):
    """He et al., 2016, with the basic block."""

    class Block(n.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1 = n.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.norm1 = n.BatchNorm2d(outputs)
            self.conv2 = n.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.norm2 = n.BatchNorm2d(outputs)
            self.relu = n.ReLU()
            self.shortcut = None
            if stride != 1 or inputs != outputs:
                self.shortcut = n.Sequential(
                    n.Conv2d(inputs, outputs, 1, stride, bias=False), n.BatchNorm2d(outputs)
                )

        def forward(self, x):
            y = self.relu(self.norm1(self.conv1(x)))
            y = self.norm2(self.conv2(y))
            return self.relu(y + (x if self.shortcut is None else self.shortcut(x)))

    stem = [n.Conv2d(3, 64, 7, 2, 3, bias=False), n.BatchNorm2d(64), n.ReLU()]
    blocks, inputs = [], 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        blocks += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
        inputs = outputs
    head = [n.AdaptiveAvgPool2d(1), n.Flatten(), n.Linear(512, 1000)]
    return n.Sequential(*stem, n.MaxPool2d(3, 2, 1), *blocks, *head)


def gpt2_block(n):
    """One layer of GPT-2 (Radford et al., 2019): 768 features, 12 heads, causal."""
    size, heads = 768, 12
    attention = n.functional.scaled_dot_product_attention
    # Compiled functions look at what the code reaches, and the module `inspect` evaluates texts.
    torch = "is_causal" in getattr(getattr(attention, "__code__", None), "co_varnames", ())
    torch = torch or n.__name__.startswith("torch")
    causal = {"is_causal" if torch else "causal": True}

    class Block(n.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = n.LayerNorm(size), n.LayerNorm(size)
            self.qkv, self.out = n.Linear(size, 3 * size), n.Linear(size, size)
            self.up, self.down = n.Linear(size, 4 * size), n.Linear(4 * size, size)
            self.gelu = n.GELU(approximate="tanh" if torch else True)

        def forward(self, x):
            batch, length, _ = x.shape
            parts = self.qkv(self.norm1(x)).reshape((batch, length, 3, heads, size // heads))
            query, key, value = (parts[:, :, i].transpose(1, 2) for i in range(3))
            y = attention(query, key, value, **causal).transpose(1, 2)
            x = x + self.out(y.reshape((batch, length, size)))
            return x + self.down(self.gelu(self.up(self.norm2(x))))

    return Block()


def lstm(n):
    """A sequence to a class."""

    class Classifier(n.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = n.LSTM(128, 128), n.Linear(128, 10)

        def forward(self, x):
            return self.head(self.lstm(x)[0][-1])

    return Classifier()
