# SPDX-License-Identifier: Apache-2.0
"""What servers keep: over restarts, kills and damage, and in checkpoints."""

import os
import signal
import subprocess
import sys

import pytest
import tenon
from tenon import optim
from tenon.distributed import ps, rpc
from tenon.distributed.ps import LocalJob, server
from tenon.distributed.ps import log as logs


def table_of(job, name="t", **given):
    made = {"lr": 0.5, "initial_accumulator_value": 0.1, "initial_range": 0.5, **given}
    return ps.Table(name, 4, optim.Adagrad, job=job, **made)


def step_of(table, step):
    ids = (tenon.arange(40) * 3 + 7 * step) % 97
    table.push(ids, (tenon.arange(160).reshape([40, 4]) * 0.1 + step).cos())


def rows_of(table):
    return table.pull(tenon.arange(97)).tolist()


@pytest.fixture
def expected():
    """Rows after 3, 6 and 9 steps."""
    rows = []
    with LocalJob(1, 2) as local:
        table = table_of(local.jobs[0])
        for step in range(9):
            step_of(table, step)
            if step % 3 == 2:
                rows.append(rows_of(table))
    return rows


@pytest.mark.parametrize("log_limit", [1 << 28, 3000], ids=["log", "snapshots"])
def test_a_server_that_starts_again_has_all_it_acknowledged(tmp_path, expected, log_limit):
    with LocalJob(1, 2, folder=str(tmp_path), log_limit=log_limit) as local:
        table = table_of(local.jobs[0])
        for step in range(9):
            step_of(table, step)
            if step == 2:
                table.flush()
                local.start_again(1)
            if step == 5:
                table.flush()
                table.day_end()
                for index in range(2):
                    local.start_again(index)
        assert rows_of(table) == expected[2]
    snapshots = [
        name for name in os.listdir(tmp_path / "server0" / "t") if name.startswith("snapshot")
    ]
    assert len(snapshots) == (log_limit == 3000)
    # Another job in the same folder goes on from there, with all of its workers.
    with LocalJob(1, 2, folder=str(tmp_path)) as local:
        assert rows_of(table_of(local.jobs[0])) == expected[2]


def test_a_push_whose_answer_was_lost_is_not_carried_out_twice(tmp_path):
    with LocalJob(1, 1, folder=str(tmp_path)) as local:
        job = local.jobs[0]
        table = ps.Table("t", 1, optim.SGD, lr=1.0, job=job, initial_range=0.0)
        ids, grad = tenon.tensor([5]), tenon.ones([1, 1])
        for _ in range(3):
            job.begin(0, "push", "t", [0, 0, ids, grad, None, None]).wait()
        job.begin(0, "change", "t", [0, 0, "day_end", []]).wait()
        job.begin(0, "change", "t", [0, 0, "day_end", []]).wait()
        assert table.pull(ids).item() == -1.0
        assert job.begin(0, "counters", "t", []).wait()["day"] == 1
        with pytest.raises(
            rpc.RemoteError, match="expected push 1 of worker 0, got 7: server 0 has lost"
        ):
            job.begin(0, "push", "t", [0, 7, ids, grad, None, None]).wait()


def test_a_server_without_its_folder_is_told_from_one_that_went_on():
    with LocalJob(1, 1) as local:
        table = table_of(local.jobs[0])
        step_of(table, 0)
        table.flush()
        local.start_again(0)
        with pytest.raises(RuntimeError, match="started again without"):
            rows_of(table)


def test_a_server_is_found_when_it_can_answer(monkeypatch):
    announce, found = rpc.Agent.announce, []

    def checked(agent):
        if agent.name.startswith("server"):
            found.append(agent in server._servers)
        announce(agent)

    monkeypatch.setattr(rpc.Agent, "announce", checked)
    with LocalJob(1, 2):
        assert found == [True, True]


def test_a_server_that_does_not_come_back_is_named():
    with LocalJob(1, 1, timeout=0.2) as local:
        table = table_of(local.jobs[0])
        local.servers[0].end()
        with pytest.raises(
            rpc.PeerLost, match="server 0 is gone, and did not come back within 0.2 s"
        ):
            rows_of(table)


def test_checkpoints_are_loaded_by_any_number_of_servers(tmp_path, expected):
    full, delta, last = (str(tmp_path / name) for name in ("full", "delta", "last"))
    with LocalJob(1, 2) as local:
        table = table_of(local.jobs[0])
        with pytest.raises(
            rpc.RemoteError, match="expected a save or a load before a delta, got none"
        ):
            table.save(delta, delta=True)
        for step in range(9):
            step_of(table, step)
            if step == 2:
                table.save(full)
            if step == 5:
                table.save(delta, delta=True)
        table.shrink(score=1e9)
        table.save(last, delta=True)
    for count in (1, 3):
        with LocalJob(1, count, folder=str(tmp_path / f"servers{count}")) as local:
            table = table_of(local.jobs[0])
            step_of(table, 1)  # rows that are to go
            with pytest.raises(
                rpc.RemoteError, match="that the delta .* follows to be loaded before, got none"
            ):
                table.load(delta)
            table = table_of(local.jobs[0], "u")
            table.load(full)
            assert rows_of(table) == expected[0]
            with pytest.raises(
                rpc.RemoteError, match="follows to be loaded before, got another one"
            ):
                table.load(last)
        with LocalJob(1, count, folder=str(tmp_path / f"more{count}")) as local:
            table = table_of(local.jobs[0])
            table.load(full)
            table.load(delta)
            assert rows_of(table) == expected[1]
            for step in range(6, 9):
                step_of(table, step)
            assert rows_of(table) == expected[2]
            local.start_again(0)
            assert rows_of(table) == expected[2]
            table.load(full)
            table.load(delta)
            table.load(last)
            assert table.counters()["rows"] == 0


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    folder = str(tmp_path / "saved")
    with LocalJob(1, 1) as local:
        job = local.jobs[0]
        table = table_of(job)
        step_of(table, 0)
        table.save(folder)
        other = ps.Table("other", 5, optim.SGD, lr=1.0, job=job)
        with pytest.raises(rpc.RemoteError, match="expected rows of 5 floats.*got 8 in"):
            other.load(folder)
        with pytest.raises(FileNotFoundError, match="it was never written to its end"):
            table.load(str(tmp_path / "none"))
        tenon.distributed.checkpoint.save({"x": tenon.ones([2])}, str(tmp_path / "plain"))
        with pytest.raises(
            ValueError, match="to be what Table.save.. wrote, got another checkpoint"
        ):
            table.load(str(tmp_path / "plain"))
        damaged = next(name for name in os.listdir(folder) if name.startswith("pieces"))
        with open(os.path.join(folder, damaged), "r+b") as file:
            file.seek(-3, os.SEEK_END)
            file.write(b"xxx")
        with pytest.raises(rpc.RemoteError, match="the file was damaged"):
            table.load(folder)


# -- the log


def test_a_log_that_is_cut_at_any_byte_has_the_records_before(tmp_path):
    path = str(tmp_path / "log")
    log = logs.Log(path)
    sizes = []
    for number in range(3):
        log.wait(log.append({"number": number, "x": tenon.full([number], 2.0)}))
        sizes.append(log.bytes)
    log.finish()
    whole = (tmp_path / "log").read_bytes()
    for cut in range(len(whole)):
        (tmp_path / "log").write_bytes(whole[:cut])
        found = [record["number"] for record in logs.read(path)]
        assert found == list(range(sum(size <= cut for size in sizes)))
        assert os.path.getsize(path) == max([size for size in sizes if size <= cut], default=0)


@pytest.mark.parametrize("at", [0, 5, 9, 30, 34, 60], ids=lambda at: f"byte{at}")
def test_a_log_that_is_damaged_in_the_middle_is_an_error(tmp_path, at):
    path = str(tmp_path / "log")
    log = logs.Log(path)
    for number in range(3):
        log.append({"number": number, "x": tenon.full([4], 2.0)})
    log.wait_for_all()
    log.finish()
    data = bytearray((tmp_path / "log").read_bytes())
    data[at] ^= 0x40
    (tmp_path / "log").write_bytes(data)
    with pytest.raises(
        logs.LogDamaged, match="the record at byte 0 is not what was written; restore"
    ):
        list(logs.read(path))


def test_a_disk_that_is_full_acknowledges_nothing(tmp_path, monkeypatch):
    with LocalJob(1, 1, folder=str(tmp_path)) as local:
        table = table_of(local.jobs[0])
        step_of(table, 0)
        table.flush()

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "writev", full)
        step_of(table, 1)
        with pytest.raises(
            rpc.RemoteError, match="the log of a server cannot be written.*No space left"
        ):
            table.flush()


# -- processes


PROGRAM = """
import os, pathlib, sys, time
import tenon
from tenon import optim
from tenon.distributed import ps

folder = pathlib.Path(sys.argv[1])
if ps.is_server():
    (folder / ("pid" + os.environ["TENON_SERVER"])).write_text(str(os.getpid()))
    ps.serve(folder, log_limit=40_000)
else:
    job = ps.init()
    table = ps.Table("t", 2, optim.SGD, lr=1.0, mode="async", initial_range=0.0)
    ids = tenon.arange(64)
    for step in range(150):
        table.push(ids, -tenon.ones([64, 2]))
        if step % 10 == 0:
            table.flush()
        if step in (40, 80) and job.worker == 1:  # the other one goes on
            print("pushed", step, flush=True)
            while not (folder / f"killed{step}").exists():
                time.sleep(0.01)
    table.flush()
    job.agent.store.set(f"done{job.worker}", b"")
    for worker in range(job.workers):
        job.agent.store.get(f"done{worker}", 120)
    rows = table.pull(ids)
    print("rows", rows.min().item(), rows.max().item(), flush=True)
    ps.close()
"""


def test_servers_that_are_killed_while_workers_push_lose_nothing(tmp_path):
    """Each push adds 1 to all rows: a lost one, or one that counts twice, is seen."""
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "tenon", "run", "-n", "2", "--servers", "2"]
    command += ["--max-restarts", "1", str(script), str(tmp_path)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as job:
        try:
            for turn, step in enumerate((40, 80)):
                assert job.stdout.readline() == f"[1] pushed {step}\n"
                os.kill(int((tmp_path / f"pid{turn}").read_text()), signal.SIGKILL)
                (tmp_path / f"killed{step}").touch()
            out, err = job.communicate(timeout=150)
        finally:
            job.terminate()
    assert job.returncode == 0, err
    assert out.count("rows 300.0 300.0") == 2
    for turn in range(2):
        text = f"server {turn} was ended by SIGKILL; it starts again, restart 1 of 1"
        assert text in err


def test_a_server_that_fails_ends_the_job_where_no_restart_is_left(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import os, sys, time\nsys.exit(3) if 'TENON_SERVER' in os.environ else time.sleep(60)\n"
    )
    _, err, code = run_job(["-n", "1", "--servers", "1", str(script)], tmp_path)
    assert code == 3 and "tenon run: the first failure: server 0 ended with exit code 3" in err


def run_job(arguments, folder):
    done = subprocess.run(
        [sys.executable, "-m", "tenon", "run", *arguments],
        env={**os.environ, "FOLDER": str(folder)},
        capture_output=True,
        text=True,
        timeout=150,
    )
    return done.stdout, done.stderr, done.returncode


def test_tenon_run_refuses_servers_for_a_number_of_ranks_that_changes(tmp_path):
    _, err, code = run_job(["-n", "2:3", "--max-restarts", "1", "--servers", "1", "x.py"], tmp_path)
    assert (
        code != 0 and "--servers starts servers for a fixed number of ranks on one machine" in err
    )


def test_what_is_refused_is_not_in_the_log(tmp_path):
    with LocalJob(1, 1, folder=str(tmp_path)) as local:
        job = local.jobs[0]
        table = table_of(job)
        step_of(table, 0)
        rows = rows_of(table)
        with pytest.raises(ValueError, match="expected unseen_days from 0 to 4294967295, got -1"):
            table.shrink(-1)
        with pytest.raises(ValueError, match="expected a number as score, got nan"):
            table.shrink(score=float("nan"))
        for arguments in ([0, 0, "shrink", [-1, 0.0]], [0, 0, "forget", []]):
            with pytest.raises(
                rpc.RpcError, match="expected unseen_days|is no change that servers"
            ):
                job.begin(0, "change", "t", arguments).wait()
        local.start_again(0)
        assert rows_of(table) == rows
