# SPDX-License-Identifier: Apache-2.0
"""Ranks as processes, which tests may stop and kill."""

import os
import subprocess
import sys
import textwrap

import tenon.distributed as dist

PRELUDE = """
import os, signal, sys, time
import tenon
import tenon.distributed as dist
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def all_have_started():
    # Time limits of the job then do not count how long a loaded machine takes to start the processes.
    store = dist.TcpStore("127.0.0.1", int(os.environ["MASTER_PORT"]))
    store.set(f"started{rank}", b"")
    store.wait([f"started{other}" for other in range(int(os.environ["PROCESSES"]))], 60)


"""


class Processes:
    """`size` ranks that run `program`; use as a context. Standard output and errors of each are in `outputs`."""

    def __init__(self, size, program, **variables):
        self.server = dist.serve_store("127.0.0.1")
        self.ranks = [
            subprocess.Popen(
                [sys.executable, "-c", PRELUDE + textwrap.dedent(program)],
                env={
                    **os.environ,
                    "RANK": str(rank),
                    "WORLD_SIZE": str(size),
                    "PROCESSES": str(size),
                    "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": str(self.server.port),
                    "TENON_STORE": "test",
                    "TENON_NUM_THREADS": "1",
                    **variables,
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(size)
        ]
        self.store = dist.TcpStore("127.0.0.1", self.server.port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.kill()
            rank.communicate()
        self.server.close()

    def finish(self, *ranks):
        """(standard output, errors) of these ranks, or all, once they have ended."""
        return [self.ranks[r].communicate(timeout=50) for r in ranks or range(len(self.ranks))]
