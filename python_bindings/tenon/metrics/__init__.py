# SPDX-License-Identifier: Apache-2.0
"""Metrics that are counted batch by batch and merged over processes.

    accuracy = tenon.metrics.Accuracy()
    for x, target in loader:
        accuracy.update(model(x), target)
    print(accuracy.compute())

update() adds to counts on the device of the prediction and does not wait for it; compute() reads
them. Counts of several processes are merged by merge(), also from the state_dict() of another one.
"""

from .base import Mean, MeanAbsoluteError, MeanSquaredError, Metric, Perplexity
from .chunks import ChunkScore, chunk_eval
from .classification import F1, Accuracy, ConfusionMatrix, IoU, Precision, Recall
from .detection import DetectionMAP
from .ranking import AUC
from .text import BLEU

__all__ = [
    "AUC",
    "BLEU",
    "F1",
    "Accuracy",
    "ChunkScore",
    "ConfusionMatrix",
    "DetectionMAP",
    "IoU",
    "Mean",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "Metric",
    "Perplexity",
    "Precision",
    "Recall",
    "chunk_eval",
]
