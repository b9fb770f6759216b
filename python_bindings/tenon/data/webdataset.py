# SPDX-License-Identifier: Apache-2.0
"""Samples in tar files, as WebDataset writes them."""

from __future__ import annotations

import contextlib
import gzip
import json
import lzma
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .dataset import IterableDataset
from .reading import get_worker_info, pass_rng

_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")


class WebDataset(IterableDataset):
    """Samples are neighbouring files of a tar file whose names are the same up to the first dot.

    `cat/01.jpg` and `cat/01.cls` are the sample {"__key__": "cat/01", "jpg": bytes, "cls": 3}: `cls` is
    decoded as an integer, `txt` as text and `json` as JSON, everything else stays bytes for `transform`,
    which is given the dict and returns the sample.

    shards          paths, or one; "train-{000..127}.tar" stands for 128 files
    shuffle_shards  read the files in a new order in each pass, which follows from the loader's seed

    Tar files are read from start to end. Each worker reads every num_workers-th of them, so that there
    should be at least one for each.
    """

    def __init__(
        self,
        shards: str | os.PathLike | Sequence[str | os.PathLike],
        transform: Callable[[dict[str, Any]], Any] | None = None,
        shuffle_shards: bool = False,
    ) -> None:
        given = [shards] if isinstance(shards, (str, os.PathLike)) else shards
        self.shards = [path for each in given for path in _expanded(os.fspath(each))]
        if not self.shards:
            raise ValueError("WebDataset: expected at least one tar file, got none")
        self.transform, self.shuffle_shards = transform, shuffle_shards

    def __iter__(self) -> Iterator[Any]:
        shards = list(self.shards)
        if self.shuffle_shards:
            pass_rng().shuffle(shards)  # the same order in each worker
        info = get_worker_info()
        for path in shards[info.id :: info.num_workers] if info else shards:
            for sample in _samples(path):
                yield sample if self.transform is None else self.transform(sample)


def _expanded(pattern: str) -> list[str]:
    """The paths that "{000..127}" in a path stands for."""
    match = _RANGE.search(pattern)
    if match is None:
        return [pattern]
    first, last = match.groups()
    return [
        path
        for number in range(int(first), int(last) + 1)
        for path in _expanded(
            f"{pattern[: match.start()]}{number:0{len(first)}}{pattern[match.end() :]}"
        )
    ]


def _samples(path: str) -> Iterator[dict[str, Any]]:
    sample: dict[str, Any] = {}
    try:
        with _archive(path) as archive:
            for member in archive:
                if not member.isfile():
                    continue
                folder, name = os.path.split(member.name)
                stem, _, field = name.partition(".")
                key = os.path.join(folder, stem)
                if sample and sample["__key__"] != key:
                    yield sample
                    sample = {}
                sample["__key__"] = key
                file = archive.extractfile(member)
                assert file is not None  # it is a regular file
                sample[field.lower()] = _decoded(member.name, field.lower(), file.read())
    except (tarfile.TarError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise OSError(f"WebDataset: {path}: {error}") from error
    except OSError as error:
        if error.filename is not None:  # the system's own, which names the file
            raise
        raise OSError(f"WebDataset: {path}: {error}") from error
    if sample:
        yield sample


@contextlib.contextmanager
def _archive(path: str) -> Iterator[tarfile.TarFile]:
    """The file as a stream: nothing is read twice. tarfile does not look at the checksum of gzip."""
    with open(path, "rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    if not is_gzip:
        with tarfile.open(path, "r|*") as archive:
            yield archive
        return
    with gzip.open(path) as content:
        with tarfile.open(fileobj=content, mode="r|") as archive:
            yield archive
        while content.read(1 << 20):  # the checksum stands at the end
            pass


def _decoded(name: str, field: str, content: bytes) -> Any:
    kind = field.rpartition(".")[2]
    try:
        if kind == "cls":
            return int(content)
        if kind == "txt":
            return content.decode()
        return json.loads(content) if kind == "json" else content
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
