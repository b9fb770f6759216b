# SPDX-License-Identifier: Apache-2.0
"""A job without a launcher has a secret, too: strangers do not meet its ranks."""

import os
import threading

import pytest
import tenon.distributed as dist
from ranks import Processes
from tenon.distributed.secret import job_secret


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Of a user who was told nothing about secrets; the path is where one is kept."""
    monkeypatch.delenv("TENON_JOB_SECRET")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".config" / "tenon" / "job_secret"


def test_one_is_made_for_the_user(home):
    found = [b""] * 8

    def look(index):
        found[index] = job_secret()

    threads = [threading.Thread(target=look, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1 and any(found[0])
    assert home.read_text() == found[0].hex() + "\n" and home.stat().st_mode & 0o777 == 0o600
    assert os.listdir(home.parent) == ["job_secret"]


def test_ranks_meet_by_it_and_strangers_do_not(home):
    # Rank 0 serves the store, as with launchers that set the variables of torchrun.
    program = """
        del os.environ["TENON_STORE"]
        dist.init_process_group(timeout=30)
        if rank == 0:
            try:
                dist.TcpStore("127.0.0.1", int(os.environ["MASTER_PORT"]), bytes(16))
            except tenon.PolicyError as error:
                print(error)
        print(dist.all_reduce(tenon.ones([1])).item())
    """
    free = dist.serve_store("127.0.0.1")
    port = str(free.port)
    free.close()
    with Processes(2, program, MASTER_PORT=port) as processes:
        (first, errors), (second, _) = processes.finish()
    assert first.endswith(
        "expects another secret; ranks of one job have the same TENON_JOB_SECRET\n2.0\n"
    ), errors
    assert second == "2.0\n"


def test_the_variable_comes_first(home, monkeypatch):
    monkeypatch.setenv("TENON_JOB_SECRET", "ab" * 16)
    assert job_secret() == b"\xab" * 16 and not home.exists()
    for wrong in ("ab", "xy" * 16, "00" * 16):
        monkeypatch.setenv("TENON_JOB_SECRET", wrong)
        with pytest.raises(ValueError, match="expected 32 hexadecimal digits, not all of them 0"):
            job_secret()


def test_what_others_may_read_is_no_secret(home, tmp_path, monkeypatch):
    job_secret()
    home.chmod(0o644)
    with pytest.raises(RuntimeError, match="readable by this user alone; delete it, or export"):
        job_secret()
    home.chmod(0o600)
    home.write_text("0" * 32)
    with pytest.raises(RuntimeError, match="expected 32 hexadecimal digits in .*job_secret"):
        job_secret()
    home.unlink()
    home.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RuntimeError, match="could not keep one in .*; export the same TENON_JOB"):
        job_secret()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    with pytest.raises(RuntimeError, match="could not keep one in .*: .*Not a directory"):
        job_secret()


def test_zeros_are_refused(home):
    with pytest.raises(ValueError, match="got zeros, which can be guessed; leave it out"):
        dist.serve_store("127.0.0.1", 0, bytes(16))
