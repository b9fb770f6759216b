# SPDX-License-Identifier: Apache-2.0
"""Reasons for which plugins are refused, as exit codes and as advice. docs/plugins.md explains them."""

# The host's own, in the order of its list: append only. NOT_FOUND is exit code 11.
_HOST = (
    "NOT_FOUND NOT_ALLOWED_DIR WRITABLE BAD_ELF WRONG_ARCH NO_NOTE BAD_NOTE EPOCH SANITIZER "
    "CPU_FEATURE DISABLED NAME_TAKEN MISSING_DEP MISSING_SYMBOL OPEN_FAILED QUERY_FAILED BAD_TABLE "
    "NO_DEVICE OP_CONFLICT START_FAILED IN_USE STOP_FAILED NOT_PINNED BAD_SIGNATURE CANNOT_VERIFY"
).split()
EXIT_CODES = {name: code for code, name in enumerate(_HOST, 11)}
# What only a process that looks on from outside can say.
EXIT_CODES |= {"CRASHED": 60, "TIMED_OUT": 61, "RESIDENT": 62}

# Reasons that the user requested.
WANTED = frozenset({"DISABLED"})

_REINSTALL = frozenset("BAD_ELF WRONG_ARCH CPU_FEATURE".split())
_UPGRADE = frozenset("BAD_NOTE MISSING_SYMBOL BAD_TABLE OP_CONFLICT CRASHED".split())


def exit_code(reason):
    return EXIT_CODES.get(reason, 1)


def pip_hint(diagnosis, host_epoch):
    """A command of pip that may help, or None."""
    reason = diagnosis["reason"]
    if reason == "EPOCH" and diagnosis.get("epoch_min", 0) > host_epoch:
        # PyPI does not have it.
        return "pip install --upgrade .  # in a newer checkout of Tenon"
    name = distribution_of(diagnosis["path"])
    if not name:
        return None
    if reason == "EPOCH" or reason in _UPGRADE:
        return f"pip install --upgrade {name}"
    if reason in _REINSTALL:
        return f"pip install --force-reinstall --no-cache-dir {name}"
    if reason == "NAME_TAKEN":
        return f"pip uninstall {name}"
    return None


def distribution_of(path):
    """The installed distribution that brought a file."""
    import os
    from importlib import metadata

    name = os.path.basename(path)
    for distribution in metadata.distributions():
        # Parsing the list of files is slow, and few lists have the name at all.
        if name not in (distribution.read_text("RECORD") or ""):
            continue
        for file in distribution.files or ():
            if file.name == name and os.path.realpath(file.locate()) == path:
                return distribution.metadata["Name"]
    return None
