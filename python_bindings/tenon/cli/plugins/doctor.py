# SPDX-License-Identifier: Apache-2.0
"""Load every known plugin, or the one at PATH, in another process, and say what is wrong with it.

The exit code is 0 if nothing is, and else stands for the reason of the first refusal: 11 NOT_FOUND,
12 NOT_ALLOWED_DIR, and so on in the order of docs/plugins.md; 60 CRASHED, 61 TIMED_OUT. Plugins that
are switched off, warnings, and absent devices of the plugins that Tenon brings do not count: a machine
has few of the devices that Tenon supports. A plugin that PATH names counts always."""

import os

from tenon.cli import output
from tenon.cli.plugins.elf_lint import lint
from tenon.cli.plugins.missing import missing_libraries, unopened_libraries
from tenon.cli.plugins.reasons import WANTED, exit_code, pip_hint

HELP = "why plugins are refused, and what to do"

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_COLOURS = {"ok": "green", "refused": "red", "off": "dim", "absent": "dim"}


def add_arguments(parser):
    parser.add_argument("paths", metavar="PATH", nargs="*", help="a plugin's library")
    parser.add_argument(
        "--timeout", type=float, default=60, metavar="SECONDS", help="for one plugin; default: 60"
    )
    output.add_json_option(parser)


def run(arguments):
    from tenon.cli.plugins.probe import probe

    # As the host names them, and with the file's own name, from which a plugin that crashes is known.
    paths = [os.path.realpath(path) for path in arguments.paths]
    report = probe(paths, arguments.timeout)
    diagnoses = diagnose(report, paths)
    if arguments.json:
        output.print_json({"host": report["host"], "diagnoses": diagnoses})
    else:
        _print(diagnoses)
    refused = [d for d in diagnoses if d["state"] == "refused"]
    return exit_code(refused[0]["reason"]) if refused else 0


def diagnose(report, paths):
    """One dict for every plugin: state ok, refused, off, or absent (a device that this machine
    lacks); of what is not ok also stage, reason, text, fix, pip; of all, warnings."""
    from tenon.plugins import remarks

    notes = {plugin["path"]: plugin for plugin in report["plugins"]}
    attempts = {attempt["path"]: attempt for attempt in report["attempts"]}
    diagnoses = []
    for path in dict.fromkeys(paths or [*notes, *attempts]):
        note = notes.get(path, {})
        # No fault is known of a plugin that was never tried.
        attempt = attempts.get(path, {"reason": "NONE"})
        diagnosis = {
            "name": attempt.get("name") or note.get("name", ""),
            "version": attempt.get("version") or note.get("version", ""),
            "path": path,
            "state": "ok",
            **{key: note[key] for key in ("epoch_min", "epoch_max") if key in note},
        }
        if attempt["reason"] != "NONE":
            diagnosis["state"] = _state(attempt["reason"], path, named=bool(paths))
            diagnosis |= {key: attempt[key] for key in ("stage", "reason", "text", "fix")}
            if attempt["reason"] == "MISSING_DEP" and (missing := missing_libraries(path)):
                diagnosis["text"] = (
                    f"{path} needs libraries that are not found: {', '.join(missing)}"
                )
                diagnosis["fix"] = (
                    "install them, or put them beside the plugin and link it with RUNPATH $ORIGIN"
                )
            diagnosis["pip"] = pip_hint(diagnosis, report["host"]["epoch"])
        is_plugin = bool(diagnosis["name"])
        diagnosis["warnings"] = lint(path) if is_plugin and os.path.isfile(path) else []
        diagnosis["warnings"] += remarks(note) if note else []
        diagnosis["warnings"] += filter(None, [unopened_libraries(path)])
        diagnoses.append(diagnosis)
    return diagnoses if paths else diagnoses + _announced_problems()


def _state(reason, path, named):
    if reason in WANTED:
        return "off"
    brought = os.path.dirname(path) == os.path.realpath(os.path.join(_PACKAGE, "plugins"))
    return "absent" if reason == "NO_DEVICE" and brought and not named else "refused"


def _announced_problems():
    """Entry points of installed distributions that lead nowhere."""
    from tenon.host import entry_points

    return [
        {
            "name": text.partition("=")[0].strip(),
            "version": "",
            "path": location or "",
            "state": "refused",
            "stage": "trust",
            "reason": "NOT_FOUND",
            "text": f"entry point `{text}`: {problem}",
            "fix": "install its distribution again",
            "pip": None,
            "warnings": [],
        }
        for text, location, problem in entry_points.announced()
        if problem
    ]


def _print(diagnoses):
    if not diagnoses:
        print("no plugin is known; see docs/plugins.md for where they are looked for")
        return
    for diagnosis in diagnoses:
        state = diagnosis["state"]
        name = f"{diagnosis['name'] or '?'} {diagnosis['version']}".strip()
        print(f"{output.colour(f'{state:<8}', _COLOURS[state])} {name}  {diagnosis['path']}")
        if state != "ok":
            reason = output.colour(diagnosis["reason"], _COLOURS[state])
            print(f"         {reason} at stage {diagnosis['stage']}: {diagnosis['text']}")
            for label, text in (("fix", diagnosis["fix"]), ("pip", diagnosis["pip"])):
                if text:
                    print(f"         {label}: {text}")
        for warning in diagnosis["warnings"]:
            print(f"         {output.colour('warning', 'yellow')}: {warning}")
    count = sum(diagnosis["state"] == "refused" for diagnosis in diagnoses)
    print(f"{len(diagnoses)} examined, {count} refused")
