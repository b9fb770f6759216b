# SPDX-License-Identifier: Apache-2.0
"""Parameter servers: embeddings of more rows than a worker has memory for.

    if ps.is_server():                             # tenon run -n 2 --servers 2 train.py
        ps.serve("run/servers")
    else:
        ps.init()
        table = ps.Table("clicks", 16, optim.Adagrad, lr=0.05)
        embed = ps.DistributedEmbedding(16, table)
        ...
        ps.close()

Rows have 64-bit ids and lie on servers by their hash (docs/parameter_server.md).
"""

from .embedding import DistributedEmbedding
from .job import Job, Role, close, current_job, init, is_server, read_role, serve
from .local import LocalJob, local
from .row_optimizer import register_optimizer
from .server import Server
from .settings import CountEntry, ProbabilityEntry, ShowClickEntry
from .table import Table

__all__ = [
    "CountEntry",
    "DistributedEmbedding",
    "Job",
    "LocalJob",
    "ProbabilityEntry",
    "Role",
    "Server",
    "ShowClickEntry",
    "Table",
    "close",
    "current_job",
    "init",
    "is_server",
    "local",
    "read_role",
    "register_optimizer",
    "serve",
]
