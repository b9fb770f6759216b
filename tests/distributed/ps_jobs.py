# SPDX-License-Identifier: Apache-2.0
"""Jobs with parameter servers inside of this process: workers are threads, and servers can be ended and started again."""

import concurrent.futures
import itertools

import tenon.distributed as dist
from tenon.distributed import ps, rpc

SECRET = bytes(range(1, 17))
_rooms = itertools.count()


class Servers:
    """`servers` servers and `workers` workers. Use as a context."""

    def __init__(self, workers=2, servers=2, folder=None, timeout=30.0, log_limit=1 << 28):
        self.store = dist.LocalStore()
        self.room = f"ps/{next(_rooms)}"
        self.folder, self.timeout, self.log_limit = folder, timeout, log_limit
        self.workers = workers
        self.servers = [None] * servers
        for index in range(servers):
            self.start(index)
        self.jobs = [self.join(worker) for worker in range(workers)]

    def _agent(self, name, rank):
        return rpc.Agent(name, rank, self.store, SECRET, timeout=self.timeout, room=self.room)

    def start(self, index):
        made = ps.Server(
            index,
            len(self.servers),
            self.workers,
            self.folder,
            timeout=self.timeout,
            log_limit=self.log_limit,
        )
        made.begin(self._agent(made.name, self.workers + index))
        self.servers[index] = made

    def stop(self, index):
        """As a killed process: connections end, and what is not in the folder is gone."""
        self.servers[index].end()

    def join(self, worker):
        agent = self._agent(f"worker{worker}", worker)
        return ps.Job(agent, worker, self.workers, len(self.servers), recovery=self.timeout)

    def run(self, work, *args):
        """`work(job, *args)` for each worker, in threads; what one raised is raised."""
        with concurrent.futures.ThreadPoolExecutor(self.workers) as pool:
            futures = [pool.submit(work, job, *args) for job in self.jobs]
            return [future.result() for future in futures]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for job in self.jobs:
            job.agent.close()
        for server in self.servers:
            server.end()
