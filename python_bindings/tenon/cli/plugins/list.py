# SPDX-License-Identifier: Apache-2.0
"""Every plugin that the host knows: name, version, ABI epochs, level, devices, state, library."""

from tenon.cli import output
from tenon.cli.plugins import add_plugin_option, load_plugins
from tenon.cli.plugins.level import level_of

HELP = "every plugin that is known, and its state"

_COLOURS = {"loaded": "green", "refused": "red", "resident": "yellow"}


def add_arguments(parser):
    add_plugin_option(parser)
    output.add_json_option(parser)


def run(arguments):
    from tenon import plugins
    from tenon.plugins import remarks

    load_plugins(arguments)
    entries = plugins.list()
    for entry in entries:
        entry["level"] = level_of(entry["path"])
    if arguments.json:
        output.print_json(entries)
        return
    rows = [("NAME", "VERSION", "EPOCH", "LEVEL", "PROVIDES", "STATE", "OVERRIDES", "LIBRARY")]
    rows += [_row(entry) for entry in entries]
    colours = {5: lambda state: _COLOURS.get(state.partition(":")[0])}
    colours[6] = lambda overrides: "yellow" if "held back" in overrides else None
    output.print_table(rows, colours)
    for entry in entries:
        for remark in remarks(entry):
            print(f"{entry['name']}: {remark}")


def _row(entry):
    state = entry["state"]
    if entry.get("reason"):
        state += f": {entry['reason']}"
    return (
        entry["name"],
        entry.get("version") or "-",
        _epochs(entry),
        _level(entry["level"]),
        _provides(entry),
        state,
        _overrides(entry),
        entry["path"],
    )


def _overrides(entry):
    """Kernels for others' operators on others' devices, and whether the user has agreed to them."""
    count, held_back = entry.get("overrides", 0), entry.get("held_back", 0)
    if not count:
        return "-"
    return f"{count} held back" if held_back else f"{count} allowed"


def _epochs(entry):
    low, high = entry.get("epoch_min"), entry.get("epoch_max")
    if low is None:  # unloaded, and only its file is still mapped
        return "-"
    return str(low) if low == high else f"{low}..{high}"


def _level(level):
    if level is None:
        return "-"
    if level["state"] != "current":
        return level["state"]
    # The stamp is not signed: a user who can write beside the library can claim any level.
    return f"claims {level['level']} (kit {level['kit']}, {level['date']})"


def _provides(entry):
    parts = []
    if entry.get("devices"):
        parts.append("device " + ", ".join(entry["devices"]))
    if entry.get("kernels_for"):
        kinds = (
            "devices that compile" if kind == "*compile" else kind for kind in entry["kernels_for"]
        )
        parts.append("kernels for " + ", ".join(kinds))
    if entry.get("namespaces"):
        parts.append("operators " + ", ".join(entry["namespaces"]))
    if entry.get("services"):
        parts.append("service " + ", ".join(entry["services"]))
    return "; ".join(parts) or entry.get("kind", "-")
