# SPDX-License-Identifier: Apache-2.0
"""One table about a device: what it is, what the conformance kit says, which operators agree with NumPy in which dtype."""

from __future__ import annotations

import collections
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

import tenon

KIT = Path(tenon.__file__).parent / "bin/tenon-conformance"
Results = dict[str, dict[str, list[str]]]  # operator, dtype: outcomes


def plugin_of(device: str) -> dict[str, object]:
    for plugin in tenon.plugins.list():
        if device in plugin["devices"]:
            return plugin
    raise SystemExit(f"expected the device of a plugin, got {device!r}; see `tenon plugins list`")


def kit(path: object, log: Path) -> list[str]:
    """The last lines of the kit: counts and the level."""
    result = subprocess.run([KIT, str(path)], capture_output=True, text=True, check=False)
    log.write_text(result.stdout + result.stderr)
    failed = re.findall(r"^FAILED +(\S+):", result.stdout, re.MULTILINE)
    level = re.findall(r"level (\w+)", result.stdout)
    checks = re.findall(r"^\w+ +(\d+) +(\d+) +\d+ +\d+$", result.stdout, re.MULTILINE)
    passed = sum(int(row[0]) for row in checks)
    return [
        f"conformance     level {level[-1] if level else 'none: the kit did not end'}, {passed} checks passed",
        f"                failed: {', '.join(failed) or 'none'}",
    ]


def operators(device: str, folder: Path) -> Results:
    """Outcomes of tests of values; calls that the device cannot run are refused, not run on the host."""
    report = folder / "operators.xml"
    command = [sys.executable, "-m", "pytest", "-q", "tests/ops/test_values.py"]
    with (folder / "operators.log").open("w") as log:
        subprocess.run(
            [*command, f"--junitxml={report}"],
            env={**os.environ, "TENON_TEST_DEVICES": device, "TENON_FALLBACK": "deny"},
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    results: Results = collections.defaultdict(lambda: collections.defaultdict(list))
    if not report.exists():
        return results
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        match = re.fullmatch(rf"\w+\[{device}-(.+)-(\w+)\]", case.get("name", ""))
        if not match:
            continue
        failure, skipped = case.find("failure"), case.find("skipped")
        # A test is skipped, too, where the device has nothing for its numbers.
        unserved = skipped is not None and " serves no " in skipped.get("message", "")
        if skipped is not None and not unserved:
            continue
        refused = unserved or (failure is not None and "PolicyError" in (failure.text or ""))
        outcome = "refused" if refused else "passed" if failure is None else "failed"
        results[match[1].split("-")[0]][match[2]].append(outcome)
    return results


def main(device: str = "", folder: str = "") -> int:
    if not device:
        raise SystemExit("usage: tests/vendor/run DEVICE [FOLDER FOR LOGS]")
    logs = Path(folder or tempfile.mkdtemp(prefix="tenon-first-run-"))
    logs.mkdir(parents=True, exist_ok=True)
    print(f"device          {device}: {tenon.ones(1).to(device).device}", flush=True)
    print(*kit(plugin_of(device)["path"], logs / "kit.log"), sep="\n", flush=True)
    results = operators(device, logs)
    bad = 0
    for dtype in sorted({dtype for rows in results.values() for dtype in rows}):
        outcomes = {op: rows[dtype] for op, rows in results.items() if dtype in rows}
        counts = collections.Counter(
            "failed" if "failed" in row else "refused" if "refused" in row else "passed"
            for row in outcomes.values()
        )
        wrong = sorted(op for op, row in outcomes.items() if "failed" in row)
        bad += len(wrong)
        print(
            f"{dtype:<16}{counts['passed']} operators right, {counts['refused']} not on the device, "
            f"wrong: {', '.join(wrong) or 'none'}"
        )
    print(f"logs            {logs}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
