# SPDX-License-Identifier: Apache-2.0
"""Train an LSTM to tell from three lines of code which module of the standard library they are of.

    python lstm_modules.py
    python lstm_modules.py --quick

Pieces of the sources that every Python contains are cut into words, numbered by a vocabulary and
padded to one length; a bidirectional LSTM reads them as a packed sequence. The exit status is 1 if
accuracy on pieces that were not seen stays below 85 % (50 % with --quick, which takes seconds).
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

import tenon
from tenon import Tensor, metrics, nn
from tenon.data import DataLoader, TensorDataset, random_split
from tenon.nn.utils import rnn
from tenon.optim import Adam
from tenon.text import Vocabulary, WordTokenizer, pad_sequences, truncate
from tenon.utils import progress

MODULES = ("argparse", "decimal", "inspect", "pickletools", "tarfile", "typing")
SOURCES = {"decimal": "_pydecimal"}  # where a module lies whose name imports another one
LINES, WORDS = 3, 48


class Classifier(nn.Module):
    """Scores of classes for sequences [batch, length] of which the first `lengths` [batch] tokens
    count."""

    def __init__(self, tokens: int, classes: int, width: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.lstm = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.3)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        packed = rnn.pack_padded_sequence(
            self.embedding(tokens), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        _, (hidden, _) = self.lstm(packed)  # [2, batch, width]: at the ends of both directions
        return self.head(self.dropout(tenon.concat([hidden[0], hidden[1]], 1)))


def loss_of(model: nn.Module, tokens: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
    return nn.functional.cross_entropy(model(tokens, lengths), labels)


def pieces_of(name: str) -> list[str]:
    """Pieces of LINES lines that are not empty."""
    path = Path(find_spec(SOURCES.get(name, name)).origin)  # without running the module
    source = path.read_text(encoding="utf-8")
    lines = [line for line in source.splitlines() if line.strip()]
    return ["\n".join(lines[i : i + LINES]) for i in range(0, len(lines) - LINES + 1, LINES)]


def load_data(names: tuple[str, ...]) -> tuple[TensorDataset, Vocabulary]:
    tokenizer = WordTokenizer()
    words, labels = [], []
    for label, name in enumerate(names):
        for piece in pieces_of(name):
            words.append(tokenizer(piece))
            labels.append(label)
    kept = [i for i, each in enumerate(words) if each]
    vocabulary = Vocabulary.build(words, 2, special_tokens=["<pad>"], unknown="<unk>")
    numbers = [truncate(vocabulary.encode(words[i]), WORDS) for i in kept]
    table, lengths = pad_sequences(numbers, length=WORDS)
    target = tenon.tensor([labels[i] for i in kept], dtype=tenon.int64)
    return TensorDataset(table, lengths, target), vocabulary


def test(model: nn.Module, dataset, device: str) -> float:
    accuracy = metrics.Accuracy()
    model.eval()
    with tenon.no_grad():
        for tokens, lengths, labels in DataLoader(dataset, batch_size=256):
            accuracy.update(model(tokens.to(device), lengths).cpu(), labels)
    return float(accuracy.compute())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="cpu, or a device of a plugin")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="one epoch over three modules")
    options = parser.parse_args(arguments)
    if options.quick:
        options.epochs = 1
    tenon.manual_seed(options.seed)
    names = MODULES[:3] if options.quick else MODULES
    dataset, vocabulary = load_data(names)
    training, held_out = random_split(dataset, [0.8, 0.2], seed=options.seed)
    model = Classifier(len(vocabulary), len(names), 32 if options.quick else 64)
    model = model.to(options.device)
    print(f"{len(dataset):,} pieces of {len(names)} modules; {len(vocabulary):,} words")

    loader = DataLoader(training, batch_size=32, shuffle=True, seed=options.seed)
    optimizer = Adam(model.parameters(), lr=3e-3)
    for epoch in range(options.epochs):
        model.train()
        bar = progress(loader, f"epoch {epoch + 1}/{options.epochs}")
        for tokens, lengths, labels in bar:
            loss = loss_of(model, tokens.to(options.device), lengths, labels.to(options.device))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            bar.update(loss=loss.item())
    accuracy = test(model, held_out, options.device)
    print(f"accuracy on {len(held_out)} pieces: {accuracy:.2%}")
    return 0 if accuracy >= (0.5 if options.quick else 0.85) else 1


if __name__ == "__main__":
    sys.exit(main())
