# SPDX-License-Identifier: Apache-2.0
"""Tables in Arrow and Parquet files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tenon

from .dataset import Dataset, IterableDataset
from .optional import need
from .reading import get_worker_info, pass_rng


class ArrowDataset(Dataset):
    """Rows of an Arrow file (Feather, or the IPC format as a file or a stream): dicts of their columns.

    The file is memory-mapped: rows are read from disk when they are requested, and processes share the
    system's cache of the file. `columns` selects some. A batch is a dict of tensors; columns of lists of
    equal length have two axes; texts and what else has no tensor are lists. Needs pyarrow.
    """

    def __init__(self, path: str | os.PathLike, columns: Sequence[str] | None = None) -> None:
        need("pyarrow", "pyarrow", "ArrowDataset")
        self.path = os.fspath(path)
        self.columns = None if columns is None else list(columns)
        self._open()

    def _open(self) -> None:
        import pyarrow

        source = pyarrow.memory_map(self.path)
        try:
            table = pyarrow.ipc.open_file(source).read_all()
        except pyarrow.ArrowInvalid:
            source.seek(0)
            table = pyarrow.ipc.open_stream(source).read_all()
        self.table = table if self.columns is None else table.select(self.columns)

    def __getstate__(self) -> dict[str, Any]:  # the file's name crosses to other processes
        return {name: value for name, value in vars(self).items() if name != "table"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    def __len__(self) -> int:
        return self.table.num_rows

    def __getitem__(self, index: int) -> dict[str, Any]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"ArrowDataset: index {index} is out of range for {len(self)} rows")
        (row,) = self.table.slice(index % len(self), 1).to_pylist()
        return row

    def batch(self, indices: Sequence[int]) -> dict[str, Any]:
        return table_batch(self.table.take(list(indices)))


class ParquetDataset(IterableDataset):
    """Rows of Parquet files, one after another: dicts of their columns.

    paths               files, or one
    columns             reads these only
    shuffle_row_groups  read row groups in a new order in each pass, which follows from the loader's seed

    Parquet is compressed by row groups, so that single rows would be slow to read; hence an iterable
    dataset. Each worker reads every num_workers-th row group. Needs pyarrow.
    """

    def __init__(
        self,
        paths: str | os.PathLike | Sequence[str | os.PathLike],
        columns: Sequence[str] | None = None,
        shuffle_row_groups: bool = False,
    ) -> None:
        need("pyarrow.parquet", "pyarrow", "ParquetDataset")
        given = [paths] if isinstance(paths, (str, os.PathLike)) else paths
        self.paths = [os.fspath(path) for path in given]
        self.columns = None if columns is None else list(columns)
        self.shuffle_row_groups = shuffle_row_groups

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        from pyarrow import parquet

        files = [parquet.ParquetFile(path) for path in self.paths]
        groups = [(file, group) for file in files for group in range(file.num_row_groups)]
        if self.shuffle_row_groups:
            pass_rng().shuffle(groups)  # the same order in each worker
        info = get_worker_info()
        for file, group in groups[info.id :: info.num_workers] if info else groups:
            yield from file.read_row_group(group, columns=self.columns).to_pylist()


def table_batch(table: Any) -> dict[str, Any]:
    """The columns of a table as tensors where they have numbers only, and as lists elsewhere."""
    return {name: _column(table.column(name)) for name in table.column_names}


def _column(column: Any) -> Any:
    from pyarrow import types

    kind = column.type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        rows = column.to_pylist()
        is_table = rows and rows[0] and all(row and len(row) == len(rows[0]) for row in rows)
        values = kind.value_type
        is_number = types.is_integer(values) or types.is_floating(values)
        return tenon.tensor(rows) if is_table and is_number else rows
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    if not is_number or column.null_count:
        return column.to_pylist()
    return tenon.from_numpy(column.to_numpy())
