# SPDX-License-Identifier: Apache-2.0
"""Start a program once for each rank, on this machine.

  tenon run -n 4 train.py --epochs 3
  tenon run -n 8 -m package.train

With several machines, start this on each of them, with one secret of 32 hexadecimal digits in TENON_JOB_SECRET:

  tenon run --nnodes 2 --node-rank 0 --rendezvous host:29400 -n 8 train.py

Output lines begin with the rank. Signals are passed on. When one rank fails, the others are ended, and the first failure
is printed last; the exit code is that of the rank. With --max-restarts 3 all ranks start again up to three times; the
variable TENON_ATTEMPT counts from 0, and programs go on from their last checkpoint (tenon.distributed.checkpoint). With
-n 2:4 there are four ranks at first, and each time one less, but two at least.

  tenon run -n 2 --servers 2 train.py

starts two servers of tables beside two ranks, which both run the program (tenon.distributed.ps).
"""

import argparse
import os
import sys

HELP = "start a program once for each rank"


def add_arguments(parser):
    parser.add_argument(
        "-n",
        default="1",
        metavar="RANKS",
        help="ranks on this machine; 2:4 with --max-restarts: four, and one less at each restart, down to two",
    )
    parser.add_argument("--nnodes", type=int, default=1, help="machines")
    parser.add_argument("--node-rank", type=int, default=0, help="the number of this one, from 0")
    parser.add_argument(
        "--rendezvous",
        metavar="HOST:PORT",
        help="where ranks meet, on machine 0; default: a free port of this machine",
    )
    parser.add_argument(
        "--max-restarts",
        type=int,
        default=0,
        metavar="TIMES",
        help="how often all ranks are started again when one fails; they go on from a checkpoint",
    )
    parser.add_argument(
        "--servers",
        type=int,
        default=0,
        metavar="SERVERS",
        help="processes beside the ranks that keep tables (tenon.distributed.ps); with --max-restarts one that is killed starts again by itself",
    )
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module as a script")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="script and its arguments")


def run(arguments):
    from tenon.cli.errors import CommandError
    from tenon.distributed.launch import Job
    from tenon.distributed.launch import run as run_job

    least, count = _ranks(arguments.n)
    if not 0 <= arguments.node_rank < arguments.nnodes:
        raise CommandError(
            f"expected --node-rank from 0 to {arguments.nnodes - 1}, got {arguments.node_rank}"
        )
    if arguments.max_restarts < 0:
        raise CommandError(f"expected --max-restarts of 0 or more, got {arguments.max_restarts}")
    if arguments.max_restarts and arguments.nnodes > 1:
        raise CommandError(
            "--max-restarts restarts the ranks of one machine; start a job of several machines again as a whole"
        )
    if least < count and not arguments.max_restarts:
        raise CommandError(
            f"expected --max-restarts, as ranks become fewer at a restart, got -n {arguments.n} alone"
        )
    if arguments.servers < 0:
        raise CommandError(f"expected --servers of 0 or more, got {arguments.servers}")
    if arguments.servers and (arguments.nnodes > 1 or least < count):
        raise CommandError(
            "--servers starts servers for a fixed number of ranks on one machine; expected it without --nnodes and without "
            f"-n FEWEST:MOST, got --nnodes {arguments.nnodes} and -n {arguments.n}"
        )
    program = arguments.program
    if not program and not arguments.module:
        raise CommandError("expected a script to run, as in: tenon run -n 4 train.py")
    if not arguments.module and program[0].endswith((".tenon", ".onnx", ".pt2")):
        raise CommandError(
            f"'{program[0]}' is a model, and this command starts scripts; run it by: tenon predict {program[0]}"
        )
    command = [sys.executable, *(["-m", arguments.module] if arguments.module else []), *program]
    job = Job(
        command,
        count,
        arguments.nnodes,
        arguments.node_rank,
        restarts=arguments.max_restarts,
        least=least,
        servers=arguments.servers,
    )
    if arguments.rendezvous:
        host, _, port = arguments.rendezvous.rpartition(":")
        if not host or not port.isdecimal():
            raise CommandError(f"expected --rendezvous HOST:PORT, got {arguments.rendezvous!r}")
        job.address, job.port = host, int(port)
    secret = os.environ.get("TENON_JOB_SECRET")
    if secret is not None:
        try:
            job.secret = bytes.fromhex(secret)
        except ValueError:
            job.secret = b""
        if len(job.secret) != 16:
            raise CommandError("expected 32 hexadecimal digits in TENON_JOB_SECRET")
    if arguments.nnodes > 1 and (job.secret is None or not arguments.rendezvous):
        raise CommandError(
            "several machines need --rendezvous HOST:PORT, and the same TENON_JOB_SECRET on all of them"
        )
    return run_job(job)


def _ranks(text):
    """Of -n: how few ranks the job goes on with, and how many it begins with."""
    from tenon.cli.errors import CommandError

    least, colon, most = text.partition(":")
    most = most if colon else least
    if not least.isdecimal() or not most.isdecimal() or not 1 <= int(least) <= int(most):
        wanted = "FEWEST:MOST, as in -n 2:4" if colon else "one rank at least"
        raise CommandError(f"expected {wanted}, got -n {text}")
    return int(least), int(most)
