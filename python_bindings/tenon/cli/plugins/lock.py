# SPDX-License-Identifier: Apache-2.0
"""Write plugins.lock, by which TENON_PLUGIN_POLICY=pinned knows the plugins that you have accepted.

Without PATH, lists every known plugin outside the host's own folder; with PATH, adds those; with each,
the libraries that it brings along. Each line is sha256sum's: `sha256sum -c plugins.lock` checks it."""

import os
import tempfile

from tenon.cli import output
from tenon.cli.errors import CommandError
from tenon.cli.plugins.level import sha256_of
from tenon.cli.plugins.missing import companions

HELP = "write the digests of plugins that you accept"


def add_arguments(parser):
    parser.add_argument("paths", metavar="PATH", nargs="*", help="a plugin's library")
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="default: TENON_PLUGIN_LOCK, or in the folder of the host's own",
    )
    output.add_json_option(parser)


def run(arguments):
    own, known = _known_plugins()
    lock = arguments.output or os.environ.get("TENON_PLUGIN_LOCK") or f"{own}/plugins.lock"
    if arguments.paths:
        entries = _read(lock)
        paths = [os.path.realpath(path) for path in arguments.paths]
    else:
        entries, paths = {}, [path for path in known if os.path.dirname(path) != own]
    for path in paths:
        if not os.path.isfile(path):
            raise CommandError(f"expected a plugin's library, but there is no file {path}")
    for path in list(paths):
        paths += [library for library in companions(path) if library not in paths]
    for path in paths:
        entries[path] = sha256_of(path)
    _write(lock, entries)
    if arguments.json:
        output.print_json({"lock": lock, "plugins": entries})
        return
    for path in paths:
        print(f"{entries[path][:16]}...  {path}")
    print(f"{lock}: {len(entries)} plugin{'s' if len(entries) != 1 else ''}")


def _known_plugins():
    """The host's own folder, and paths of plugins that are no worse than unpinned. Nothing is
    loaded."""
    import json

    from tenon import _core
    from tenon.host import entry_points

    for location in entry_points.plugin_folders():
        _core.plugin_add_folder(location)
    report = json.loads(_core.plugin_describe(load_default=False))
    beside = os.path.dirname(report["host"]["library"])  # where the host looks, in its order
    folders = (os.path.realpath(beside + below) for below in ("/../plugins", "/tenon/plugins"))
    own = next(filter(os.path.isdir, folders), beside)
    return own, [p["path"] for p in report["plugins"] if p["state"] != "refused"]


def _read(lock):
    """What a lock lists: digests by path."""
    entries = {}
    try:
        with open(lock, encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                is_escaped = line.startswith("\\")
                digest, name = line[is_escaped:].rstrip("\n").split("  ", 1)
                if is_escaped:
                    name = name.replace("\\n", "\n").replace("\\\\", "\\")
                entries[name] = digest
    except FileNotFoundError:
        pass
    except ValueError:
        raise CommandError(
            f"expected lines of sha256sum in {lock}; remove it to begin anew"
        ) from None
    return entries


def _write(lock, entries):
    """In one step: a host that reads it meanwhile sees the old lock or the new one."""
    folder = os.path.dirname(os.path.abspath(lock))
    try:
        descriptor, draft = tempfile.mkstemp(dir=folder, prefix="plugins.lock.")
    except OSError as error:
        raise CommandError(f"{folder}: {error.strerror}; choose another with --output") from None
    with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
        for path, digest in sorted(entries.items()):
            escaped = path.replace("\\", "\\\\").replace("\n", "\\n")
            mark = "\\" if escaped != path else ""
            file.write(f"{mark}{digest}  {escaped}\n")
    os.chmod(draft, 0o644)
    os.replace(draft, lock)
