# SPDX-License-Identifier: Apache-2.0
"""Messages of the runtime for programs that collect logs."""

import datetime
import json
import os
import subprocess
import sys


def lines(**environment):
    program = "import tenon; tenon.device('no \"such\" device')"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "TENON_LOG": "debug", **environment},
    )
    return [line for line in done.stderr.splitlines() if line.startswith(("{", "[tenon "))]


def test_each_message_is_an_object_of_json():
    plain, found = lines(), [json.loads(line) for line in lines(TENON_LOG_FORMAT="json")]
    assert len(found) == len(plain) > 0
    for each, line in zip(found, plain, strict=True):
        assert list(each) == ["time", "level", "process", "thread", "message"]
        age = datetime.datetime.now(datetime.timezone.utc) - datetime.datetime.fromisoformat(
            each["time"].replace("Z", "+00:00")
        )
        assert abs(age.total_seconds()) < 100
        assert line.startswith(f"[tenon {each['level']} ")


def test_another_format_is_the_plain_one():
    assert all(line.startswith("[tenon ") for line in lines(TENON_LOG_FORMAT="xml"))
