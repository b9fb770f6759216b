# SPDX-License-Identifier: Apache-2.0
"""Which rank this process is, by the variables of who started it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from .secret import given_secret

_OF_SCHEDULERS = {
    # Who started it: rank, size, rank on this machine, ranks on this machine.
    "Open MPI": (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    "MPICH": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    "Slurm": ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
}


@dataclass
class Environment:
    """`launcher` is who started the process. Ranks meet at a store of `address` and `port`, which rank 0 serves unless
    `has_store`; without an address all are on this machine and meet in `folder`."""

    launcher: str
    rank: int
    size: int
    local_rank: int
    address: str | None = None
    port: int = 0
    has_store: bool = False
    folder: str | None = None
    secret: bytes | None = None  # of the variables; job_secret() is what there is else
    attempt: int = 0  # of jobs that are started again


def read_environment(variables: Mapping[str, str] | None = None) -> Environment:
    """Those of `tenon run` and torchrun, then of mpirun and srun; none of them: a single rank."""
    variables = os.environ if variables is None else variables
    if "RANK" in variables and "WORLD_SIZE" in variables:
        found = _of_launcher(variables)
    else:
        found = _of_scheduler(variables)
    if not 0 <= found.rank < found.size:
        raise ValueError(
            f"expected a rank from 0 to {found.size - 1} in the variables of {found.launcher}, got {found.rank}"
        )
    return found


def _number(variables: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = variables.get(name)
    if text is None and default is not None:
        return default
    try:
        return int(text or "")
    except ValueError:
        raise ValueError(f"expected a number in the variable {name}, got {text!r}") from None


def _of_launcher(variables: Mapping[str, str]) -> Environment:
    size = _number(variables, "WORLD_SIZE")
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in variables]
    if missing and size > 1:
        raise ValueError(
            f"RANK and WORLD_SIZE are set, and {' and '.join(missing)} not; start the ranks with `tenon run`, or "
            "export the address and a free port of the machine of rank 0"
        )
    port = _number(variables, "MASTER_PORT", 0)
    # torchrun's own store holds the port: rank 0 serves the next one.
    if variables.get("TORCHELASTIC_USE_AGENT_STORE") == "True" and "TENON_STORE" not in variables:
        port += 1
    return Environment(
        "tenon run" if "TENON_STORE" in variables else "the launcher",
        _number(variables, "RANK"),
        size,
        _number(variables, "LOCAL_RANK", 0),
        variables.get("MASTER_ADDR"),
        port,
        "TENON_STORE" in variables,
        None,
        given_secret(variables),
        _number(variables, "TENON_ATTEMPT", _number(variables, "TORCHELASTIC_RESTART_COUNT", 0)),
    )


def _of_scheduler(variables: Mapping[str, str]) -> Environment:
    for launcher, (rank, size, local_rank, local_size) in _OF_SCHEDULERS.items():
        if rank not in variables or size not in variables:
            continue
        if launcher == "Slurm" and "SLURM_STEP_ID" not in variables:
            continue  # a batch script or an allocation, in which nothing was started by srun
        found = Environment(
            launcher,
            _number(variables, rank),
            _number(variables, size),
            _number(variables, local_rank, 0),
            secret=given_secret(variables),
        )
        if "MASTER_ADDR" in variables and "MASTER_PORT" in variables:
            found.address = variables["MASTER_ADDR"]
            found.port = _number(variables, "MASTER_PORT")
            return found
        here = variables.get(local_size, "")
        if not here.isdecimal() or int(here) != found.size:
            raise ValueError(
                f"{launcher} started ranks on several machines; export MASTER_ADDR and MASTER_PORT, the address and "
                "a free port of the machine of rank 0, so that they can meet"
            )
        found.folder = f"/tmp/tenon-{os.geteuid()}-{_job_of(variables)}"
        return found
    return Environment("no launcher", 0, 1, 0)


def _job_of(variables: Mapping[str, str]) -> str:
    """What the ranks of one start have in common, and no others: the process that started them, and when that began."""
    if "SLURM_STEP_ID" in variables:
        return f"slurm-{variables.get('SLURM_JOB_ID', '0')}-{variables['SLURM_STEP_ID']}"
    parent = os.getppid()
    with open(f"/proc/{parent}/stat", encoding="ascii", errors="replace") as file:
        started = file.read().rpartition(")")[2].split()[19]
    return f"{parent}-{started}"
