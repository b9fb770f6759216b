# SPDX-License-Identifier: Apache-2.0
"""Load plugins in another process, and report what happened there, also if it does not survive.

The other process writes JSON lines to a pipe: {"begin": path} before each plugin, {"end": report}
when it is done. If it ends in between, the plugin that was begun last did that; it is switched off,
and the rest are tried again.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time

# Later kinds refer to earlier ones.
_KIND_ORDER = ("operators", "device", "kernels", "service")


def probe(paths, timeout):
    """Try the plugins at `paths`, or all that are known. Returns the host's report, in which
    attempts that ended the process have the reasons CRASHED and TIMED_OUT."""
    disabled, fatal = [], []
    while True:
        begun, report, ending = _run(paths, disabled, timeout)
        if report is not None:
            report["attempts"] = [
                attempt
                for attempt in report["attempts"]
                if attempt["path"] not in {other["path"] for other in fatal}
            ] + fatal
            return report
        fatal.append(_fatal_attempt(begun, ending, timeout))
        if not begun or not begun["name"] or begun["name"] in disabled:
            return {"host": {"epoch": 0}, "plugins": [], "attempts": fatal}
        disabled.append(begun["name"])


def _fatal_attempt(begun, ending, timeout):
    begun = begun or {"path": "", "name": "", "version": ""}
    what = f"the process {ending} while it loaded {begun['path'] or 'the default plugins'}"
    return {
        **begun,
        "stage": "load",
        "reason": "TIMED_OUT" if "killed" in ending else "CRASHED",
        "text": what,
        "fix": f"switch it off with TENON_PLUGINS_DISABLE={begun['name']}, and tell its vendor"
        if begun["name"]
        else "",
    }


def _run(paths, disabled, timeout):
    """(the plugin begun last, the report or None, how the process ended)"""
    environment = dict(os.environ)
    names = filter(None, [environment.get("TENON_PLUGINS_DISABLE"), *disabled])
    environment["TENON_PLUGINS_DISABLE"] = ",".join(names)
    ours, theirs = os.pipe()
    said = tempfile.TemporaryFile()
    process = subprocess.Popen(
        [sys.executable, "-m", "tenon.cli.plugins.probe", str(theirs), *paths],
        pass_fds=[theirs],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=said,
    )
    os.close(theirs)
    begun = report = None
    is_late = False
    for line in _lines(ours, timeout):
        if line is None:
            is_late = True
            process.kill()
            break
        message = json.loads(line)
        begun, report = message.get("begin", begun), message.get("end", report)
    os.close(ours)
    if report is not None:
        process.kill()  # what it does on its way out is not asked here
    code = process.wait()
    if is_late:
        return begun, None, f"was killed after {timeout:g} s"
    how = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return begun, report, how + _last_words(said)


def _last_words(file):
    """The last line that a process said, as a remark."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - 400))
    lines = file.read().decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f' ("{last}")' if last else ""


def _lines(descriptor, timeout):
    """Lines from a pipe until it is closed; None once no line came for `timeout` seconds."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        last = time.monotonic()
        while True:
            if not selector.select(max(0.0, last + timeout - time.monotonic())):
                yield None
                return
            block = os.read(descriptor, 1 << 16)
            if not block:
                return
            *lines, rest = (rest + block).split(b"\n")
            if lines:
                last = time.monotonic()
            yield from lines


def _child(descriptor, paths):
    from tenon import _core
    from tenon.host import entry_points
    from tenon.plugins import library_problems

    def tell(**message):
        os.write(descriptor, json.dumps(message).encode() + b"\n")

    def load(path, name="", version=""):
        tell(begin={"path": path, "name": name, "version": version})
        try:
            _core.plugin_load(path, load_default=False)
        except Exception:  # the host has recorded it
            pass

    for location in entry_points.plugin_folders():
        try:
            _core.plugin_add_folder(location)
        except Exception:
            pass
    plugins = json.loads(_core.plugin_describe(load_default=False))["plugins"]
    plugins.sort(key=lambda plugin: _KIND_ORDER.index(plugin["kind"]))
    # TENON_PLUGIN_TRUST is for paths that the user names, not for files found in folders.
    trust = os.environ.pop("TENON_PLUGIN_TRUST", None)
    for plugin in plugins:
        # A device is tried only if the user names it, or requests all.
        is_wanted = not paths or plugin["kind"] != "device" or plugin["eager"]
        if plugin["state"] == "known" and is_wanted:
            load(plugin["path"], plugin["name"], plugin["version"])
    if trust is not None:
        os.environ["TENON_PLUGIN_TRUST"] = trust
    for path in paths:
        load(path, _name_of(path))
    report = json.loads(_core.plugin_describe(load_default=False))
    for plugin in report["plugins"]:
        if plugin["state"] == "loaded" and plugin["kind"] == "device":
            plugin["library_problems"] = library_problems(plugin["name"])
    tell(end=report)


def _name_of(path):
    """What a plugin calls itself, as far as its file's name tells."""
    stem = os.path.basename(path).partition(".")[0]
    return stem.removeprefix("libtenon_")


if __name__ == "__main__":
    _child(int(sys.argv[1]), sys.argv[2:])
