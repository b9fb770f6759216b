# SPDX-License-Identifier: Apache-2.0
"""Tables in Arrow and Parquet files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import tenon

from .dataset import Dataset, IterableDataset
from .optional import need
from .reading import get_worker_info, pass_rng


class ArrowDataset(Dataset):
    """Rows of an Arrow file (Feather, or the IPC format as a file or a stream): dicts of their columns.

    The file is memory-mapped: rows are read from disk when they are requested, and processes share the
    system's cache of the file. `columns` selects some. A batch is a dict of tensors in the dtypes of the columns;
    columns of lists of equal length have two axes; texts and what else has no tensor are lists, and so are
    columns in which a number is absent anywhere. Needs pyarrow.
    """

    def __init__(self, path: str | os.PathLike, columns: Sequence[str] | None = None) -> None:
        need("pyarrow", "pyarrow", "ArrowDataset")
        self.path = os.fspath(path)
        self.columns = None if columns is None else list(columns)
        self._open()

    def _open(self) -> None:
        import pyarrow

        with _named("ArrowDataset", self.path):
            source = pyarrow.memory_map(self.path)
            try:
                table = pyarrow.ipc.open_file(source).read_all()
            except pyarrow.ArrowInvalid:
                source.seek(0)
                table = pyarrow.ipc.open_stream(source).read_all()
        _check_columns("ArrowDataset", self.path, self.columns, table.column_names)
        self.table = table if self.columns is None else table.select(self.columns)
        # Of the whole column, so that all batches have the same form.
        self._has_gaps = {name for name in self.table.column_names if self.table[name].null_count}

    def __getstate__(self) -> dict[str, Any]:  # the file's name crosses to other processes
        return {k: v for k, v in vars(self).items() if k not in ("table", "_has_gaps")}

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
        return table_batch(self.table.take(list(indices)), self._has_gaps)


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

        groups = []
        for path in self.paths:
            with _named("ParquetDataset", path):
                file = parquet.ParquetFile(path)
            _check_columns("ParquetDataset", path, self.columns, file.schema_arrow.names)
            groups += [(path, file, group) for group in range(file.num_row_groups)]
        if self.shuffle_row_groups:
            pass_rng().shuffle(groups)  # the same order in each worker
        info = get_worker_info()
        for path, file, group in groups[info.id :: info.num_workers] if info else groups:
            with _named("ParquetDataset", path):
                rows = file.read_row_group(group, columns=self.columns).to_pylist()
            yield from rows


@contextlib.contextmanager
def _named(what: str, path: str) -> Iterator[None]:
    """Errors say which file it is."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"{what}: {path}: there is no such file") from None
    except Exception as error:
        raise OSError(f"{what}: {path}: {error}") from error


def _check_columns(
    what: str, path: str, wanted: Sequence[str] | None, names: Sequence[str]
) -> None:
    absent = [name for name in wanted or () if name not in names]
    if absent:
        raise KeyError(
            f"{what}: {path}: expected columns among {', '.join(names)}, got {', '.join(absent)}"
        )


def table_batch(table: Any, has_gaps: Container[str]) -> dict[str, Any]:
    """The columns of a table as tensors where they have numbers only, and as lists elsewhere."""
    return {
        name: column.to_pylist() if name in has_gaps else _column(column)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }


def _column(column: Any) -> Any:
    from pyarrow import types

    kind = column.type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _lists(column)
    if not _is_number(kind):
        return column.to_pylist()
    return _tensor(column)


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def _tensor(column: Any) -> Any:
    """A copy, which may be written into; Arrow's memory may not."""
    return tenon.from_numpy(column.to_numpy(zero_copy_only=False).copy())


def _lists(column: Any) -> Any:
    """Two axes where all lists have one length and hold numbers alone."""
    whole = column.combine_chunks()
    values = whole.flatten()
    lengths = set(whole.value_lengths().to_pylist())
    is_table = len(lengths) == 1 and lengths != {0} and not values.null_count
    if not is_table or not _is_number(values.type):
        return column.to_pylist()
    return _tensor(values).reshape(len(whole), -1)
