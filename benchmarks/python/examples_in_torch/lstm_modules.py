# SPDX-License-Identifier: Apache-2.0
"""The LSTM of examples/lstm_modules.py."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import rnn


class Classifier(nn.Module):
    def __init__(self, tokens, classes, width=64):
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.lstm = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.3)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, tokens, lengths):
        packed = rnn.pack_padded_sequence(
            self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False
        )
        _, (hidden, _) = self.lstm(packed)
        return self.head(self.dropout(torch.cat([hidden[0], hidden[1]], 1)))


def loss_of(model, tokens, lengths, labels):
    return F.cross_entropy(model(tokens, lengths), labels)
