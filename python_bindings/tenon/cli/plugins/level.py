# SPDX-License-Identifier: Apache-2.0
"""The stamp that the conformance kit leaves beside a library: <library>.level.json."""

import hashlib
import json

_MEMBERS = ("level", "kit", "date", "sha256")


def level_of(library):
    """The stamp as a dict with `state`: "current", "stale" if the library has changed since, or
    "unreadable". None if there is no stamp."""
    try:
        with open(library + ".level.json", encoding="utf-8") as file:
            stamp = json.load(file)
    except (OSError, ValueError) as error:
        return {"state": "unreadable"} if isinstance(error, ValueError) else None
    if not isinstance(stamp, dict) or not all(isinstance(stamp.get(key), str) for key in _MEMBERS):
        return {"state": "unreadable"}
    try:
        is_current = stamp["sha256"].lower() == sha256_of(library)
    except OSError:
        is_current = False
    return {"state": "current" if is_current else "stale", **{key: stamp[key] for key in _MEMBERS}}


def sha256_of(path):
    """The digest of a file, as sha256sum prints it."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
