# SPDX-License-Identifier: Apache-2.0
"""What the processes of a job know and others do not."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping

SECRET_BYTES = 16
_HOW = (
    "export the same TENON_JOB_SECRET for all ranks, 32 hexadecimal digits, as of "
    "python3 -c 'import secrets; print(secrets.token_hex(16))'"
)


def given_secret(variables: Mapping[str, str]) -> bytes | None:
    """That of the variable TENON_JOB_SECRET."""
    text = variables.get("TENON_JOB_SECRET", "")
    if not text:
        return None
    secret = _parsed(text)
    if secret is None:
        raise ValueError(
            "expected 32 hexadecimal digits, not all of them 0, in the variable TENON_JOB_SECRET"
        )
    return secret


def job_secret() -> bytes:
    """That of the variable TENON_JOB_SECRET, or of a file that only this user may read, which is made with random
    bytes where there is none: ranks of one machine, and of several that share home folders, agree without being told."""
    return given_secret(os.environ) or _kept_secret()


def _parsed(text: str) -> bytes | None:
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        return None
    return secret if len(secret) == SECRET_BYTES and any(secret) else None


def _kept_secret() -> bytes:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    path = os.path.join(base, "tenon", "job_secret")
    try:
        if not os.path.lexists(path):
            _make(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(descriptor, encoding="ascii", errors="replace") as file:
            status = os.fstat(descriptor)
            text = file.read(100).strip()
    except OSError as error:
        raise RuntimeError(
            f"expected a secret of this job, and could not keep one in {path}: {error}; {_HOW}"
        ) from error
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise RuntimeError(
            f"expected the secret in {path} to be readable by this user alone; delete it, or {_HOW}"
        )
    secret = _parsed(text)
    if secret is None:
        raise RuntimeError(f"expected 32 hexadecimal digits in {path}; delete it, or {_HOW}")
    return secret


def _make(path: str) -> None:
    """Whole or not at all, and by one of the processes that try it at a time."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    draft = f"{path}.{secrets.token_hex(8)}"
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(SECRET_BYTES) + "\n")
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
