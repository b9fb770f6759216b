# SPDX-License-Identifier: Apache-2.0
"""Workers that are killed at any moment. TENON_TEST_KILLS says how often; a hundred times at night."""

import multiprocessing
import os
import random
import signal
import threading
import time

import tenon
from tenon import data

KILLS = int(os.environ.get("TENON_TEST_KILLS", "5"))


class Numbers(data.Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        return tenon.full([2000], index), data.sample_rng().random()


def kill_one(after):
    time.sleep(after)
    children = [child for child in multiprocessing.active_children() if child.pid]
    if children:
        os.kill(random.choice(children).pid, signal.SIGKILL)


def make(persistent=False):
    return data.DataLoader(
        Numbers(),
        10,
        shuffle=True,
        seed=3,
        num_workers=2,
        multiprocessing_context="fork",
        persistent_workers=persistent,
        timeout=30,
    )


def listed(batch):
    return batch[0][:, 0].tolist(), batch[1].tolist()


def test_whenever_a_worker_is_killed_the_pass_goes_on_where_it_ended():
    expected = [listed(batch) for batch in make()]
    files, killed = len(os.listdir("/proc/self/fd")), 0
    began = time.monotonic()
    list(make())
    duration = time.monotonic() - began
    while killed < KILLS:
        loader, got = make(persistent=killed % 2 == 1), []
        while len(got) < len(expected):
            killer = threading.Thread(target=kill_one, args=(random.random() * duration,))
            killer.start()
            loader.load_state_dict({"epoch": 0, "batches": len(got)})
            try:
                for batch in loader:
                    got.append(listed(batch))
            except data.WorkerError as error:
                killed += 1
                assert "was ended by SIGKILL" in str(error) and error.worker in (0, 1)
            killer.join()
        assert got == expected
        loader.close()
    assert not multiprocessing.active_children()
    assert len(os.listdir("/proc/self/fd")) <= files
