# SPDX-License-Identifier: Apache-2.0
"""Load a plugin, unload it again, and say whether all of it went.

Exit code 0: it is gone. 62 (RESIDENT): the system keeps its library mapped until the process ends.
Otherwise that of the reason, as in `tenon plugins doctor`."""

import os

from tenon.cli import output
from tenon.cli.errors import CommandError
from tenon.cli.plugins.reasons import exit_code

HELP = "see whether plugins can be unloaded"


def add_arguments(parser):
    parser.add_argument("plugins", metavar="PLUGIN", nargs="+", help="a name or a library's path")
    output.add_json_option(parser)


def run(arguments):
    results = [_cycle(plugin) for plugin in arguments.plugins]
    if arguments.json:
        output.print_json(results)
    else:
        for result in results:
            print(f"{result['name']}: {result['text']}")
    return next((exit_code(r["reason"]) for r in results if r["reason"] != "NONE"), 0)


def _cycle(plugin):
    from tenon import NotFoundError, plugins

    entry = _find(plugin, plugins.list())
    path = entry["path"] if entry else os.path.realpath(plugin)
    if not entry and os.sep not in plugin:
        raise CommandError(f"no plugin named {plugin!r} is known; give its library's path")
    try:
        plugins.load(path)
        name = _find(path, plugins.list())["name"]
        plugins.unload(name)
    except (ValueError, RuntimeError, OSError, NotFoundError) as error:
        text = str(error)
        reason = text.rpartition("[")[2].rstrip("]")
        return {"name": plugin, "path": path, "reason": reason, "text": text}
    is_resident = any(
        entry["state"] == "resident" and entry["path"] == path for entry in plugins.list()
    )
    return {
        "name": name,
        "path": path,
        "reason": "RESIDENT" if is_resident else "NONE",
        "text": "unloaded, but the system keeps its library mapped; `tenon plugins doctor` may say why"
        if is_resident
        else "unloaded, and its library is unmapped",
    }


def _find(plugin, entries):
    path = os.path.realpath(plugin)
    return next((e for e in entries if plugin == e["name"] or path == e["path"]), None)
