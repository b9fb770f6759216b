# SPDX-License-Identifier: Apache-2.0
"""Arrow and Parquet files as they are found: column types, gaps, several files, damage."""

import os

import numpy as np
import pyarrow
import pytest
import tenon
from pyarrow import parquet
from tenon import data

FORK = {"num_workers": 2, "multiprocessing_context": "fork"}

TABLE = {
    "number": [1, 2, 3, 4, 5],
    "part": [0.5, None, 1.5, 2.5, 3.5],
    "row": [[i, i + 1] for i in range(5)],
    "ragged": [[1], [], [1, 2], [3], [4]],
    "name": list("abcde"),
}


def test_tables(tmp_path):
    table = pyarrow.table(TABLE)
    with pyarrow.OSFile(os.fspath(tmp_path / "file.arrow"), "wb") as sink:
        with pyarrow.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    with pyarrow.OSFile(os.fspath(tmp_path / "stream.arrow"), "wb") as sink:
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    for name in ("file.arrow", "stream.arrow"):
        dataset = data.ArrowDataset(tmp_path / name)
        assert len(dataset) == 5
        assert dataset[-1] == {column: rows[4] for column, rows in TABLE.items()}
        for options in ({}, FORK):
            first, _, _ = data.DataLoader(dataset, 2, **options)
            assert first["number"].tolist() == [1, 2] and first["number"].dtype == tenon.int64
            assert first["row"].tolist() == [[0, 1], [1, 2]]
            assert first["part"] == [0.5, None] and first["name"] == ["a", "b"]
            assert first["ragged"] == [[1], []]
    assert data.ArrowDataset(tmp_path / "file.arrow", ["name"])[0] == {"name": "a"}
    with pytest.raises(IndexError, match="out of range for 5 rows"):
        dataset[5]
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=1)
    stream = data.ParquetDataset(tmp_path / "t.parquet", ["number"], shuffle_row_groups=True)

    def numbers(**options):
        loader = data.DataLoader(stream, 1, seed=2, **options)
        return [[batch["number"].item() for batch in loader] for _ in range(2)]

    assert numbers() == numbers(**FORK)
    assert sorted(numbers()[0]) == [1, 2, 3, 4, 5] and numbers()[0] != numbers()[1]


def write(path, table):
    with pyarrow.OSFile(os.fspath(path), "wb") as sink:
        with pyarrow.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    return path


NUMBERS = {
    "int8": [1, -2, 3],
    "uint16": [1, 65535, 3],
    "uint64": [2**63, 1, 2],
    "float32": [0.5, 1.5, -2.5],
    "float64": [0.1, 1e300, 3.0],
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_keep_their_dtype(tmp_path, name):
    kind = getattr(pyarrow, name)()
    table = pyarrow.table(
        {
            "plain": pyarrow.array(NUMBERS[name], kind),
            "list": pyarrow.array([[n, n] for n in NUMBERS[name]], pyarrow.list_(kind)),
            "large": pyarrow.array([[n] for n in NUMBERS[name]], pyarrow.large_list(kind)),
            "fixed": pyarrow.array([[n, n] for n in NUMBERS[name]], pyarrow.list_(kind, 2)),
        }
    )
    batch = data.ArrowDataset(write(tmp_path / "t.arrow", table)).batch([2, 0])
    assert {column.dtype for column in batch.values()} == {getattr(tenon, name)}
    first, last = NUMBERS[name][0], NUMBERS[name][2]
    assert batch["plain"].tolist() == [last, first]
    assert batch["list"].tolist() == batch["fixed"].tolist() == [[last] * 2, [first] * 2]
    assert batch["large"].tolist() == [[last], [first]]


def test_other_types_are_lists_and_booleans_tensors(tmp_path):
    table = pyarrow.table(
        {
            "half": pyarrow.array(np.array([1, 2], np.float16)),
            "truth": [True, False],
            "truths": [[True, False], [False, True]],
            "category": pyarrow.array(["a", "b"]).dictionary_encode(),
            "bytes": [b"x", b"\0"],
            "time": pyarrow.array([1, 2], pyarrow.timestamp("ms")),
            "struct": [{"a": 1}, {"a": 2}],
            "nested": [[[1], [2]], [[3], [4]]],
            "nothing": pyarrow.nulls(2),
            "empty": pyarrow.array([[], []], pyarrow.list_(pyarrow.int64())),
        }
    )
    batch = data.ArrowDataset(write(tmp_path / "t.arrow", table)).batch([1, 0])
    assert batch["half"].dtype == tenon.float16 and batch["half"].tolist() == [2.0, 1.0]
    assert batch["truth"].dtype == tenon.bool and batch["truth"].tolist() == [False, True]
    assert batch["truths"].tolist() == [[False, True], [True, False]]
    rows = table.to_pylist()
    for name in ("category", "bytes", "time", "struct", "nested", "nothing", "empty"):
        assert batch[name] == [rows[1][name], rows[0][name]]


def test_a_gap_anywhere_makes_every_batch_a_list(tmp_path):
    table = pyarrow.table({"n": [1, None, 3, 4], "row": [[1, None], [2, 3], [4, 5], [6, 7]]})
    dataset = data.ArrowDataset(write(tmp_path / "t.arrow", table))
    assert dataset.batch([0, 1])["n"] == [1, None] and dataset.batch([2, 3])["n"] == [3, 4]
    assert dataset.batch([0, 1])["row"] == [[1, None], [2, 3]]


def test_a_batch_may_be_written_into(tmp_path):
    dataset = data.ArrowDataset(write(tmp_path / "t.arrow", pyarrow.table({"n": [1, 2, 3]})))
    batch = dataset.batch([0, 1])
    tenon.add(batch["n"], 10, out=batch["n"])
    assert batch["n"].tolist() == [11, 12] and dataset.batch([0, 1])["n"].tolist() == [1, 2]


def test_several_parquet_files_with_row_groups(tmp_path):
    for part, compression in enumerate(("zstd", "snappy", "none")):
        table = pyarrow.table({"n": list(range(part * 5, part * 5 + 5)), "text": ["t"] * 5})
        parquet.write_table(
            table, tmp_path / f"{part}.parquet", row_group_size=2, compression=compression
        )
    paths = sorted(tmp_path.glob("*.parquet"))
    rows = list(data.ParquetDataset(paths))
    assert [row["n"] for row in rows] == list(range(15)) and rows[0]["text"] == "t"
    loader = data.DataLoader(data.ParquetDataset(paths, ["n"]), 4, **FORK)
    assert sorted(n for batch in loader for n in batch["n"].tolist()) == list(range(15))


def test_columns_that_are_not_there(tmp_path):
    table = pyarrow.table({"a": [1], "b": [2]})
    parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(KeyError, match="t.parquet: expected columns among a, b, got c, d"):
        list(data.ParquetDataset(tmp_path / "t.parquet", ["a", "c", "d"]))
    with pytest.raises(KeyError, match="t.arrow: expected columns among a, b, got c"):
        data.ArrowDataset(write(tmp_path / "t.arrow", table), ["c"])


def test_files_that_are_damaged_or_absent(tmp_path):
    table = pyarrow.table({"a": list(range(1000))})
    parquet.write_table(table, tmp_path / "t.parquet")
    write(tmp_path / "t.arrow", table)
    for name in ("t.parquet", "t.arrow"):
        whole = (tmp_path / name).read_bytes()
        for size in (0, 4, 100, len(whole) // 2, len(whole) - 3):
            (tmp_path / name).write_bytes(whole[:size])
            with pytest.raises(OSError, match=rf"(Parquet|Arrow)Dataset: .*{name}: "):
                if name == "t.arrow":
                    data.ArrowDataset(tmp_path / name)
                else:
                    list(data.ParquetDataset(tmp_path / name))
    with pytest.raises(FileNotFoundError, match="ArrowDataset: .*no.arrow: there is no such file"):
        data.ArrowDataset(tmp_path / "no.arrow")
    with pytest.raises(FileNotFoundError, match="no.parquet: there is no such file"):
        list(data.ParquetDataset(tmp_path / "no.parquet"))
