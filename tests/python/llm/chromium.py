# SPDX-License-Identifier: Apache-2.0
"""A page in a headless Chromium, by the DevTools protocol over two pipes: messages of JSON that end in a zero byte."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from typing import Any

PATH = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page:
    """A tab at `address`. `errors` are exceptions and failed loads of the page."""

    def __init__(self, address: str):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()

        def connect() -> None:  # Chromium reads from descriptor 3 and writes to 4
            one, two = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(one, 3)
            os.dup2(two, 4)

        command = [
            str(PATH),
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--remote-debugging-pipe",
        ]
        command += [
            "--no-first-run",
            "--disable-dev-shm-usage",
            f"--user-data-dir={self._folder.name}",
        ]
        self._process = subprocess.Popen(
            [*command, "about:blank"], preexec_fn=connect, close_fds=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest, self._count = b"", 0
        self._session: str | None = None
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)
        self._folder.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message(30)
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _message(self, seconds: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], seconds)[0]:
                raise TimeoutError(f"Chromium said nothing for {seconds} s")
            part = os.read(self._in, 1 << 16)
            if not part:
                raise RuntimeError("Chromium has ended")
            self._rest += part
        found, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(found)
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(message["params"]["exceptionDetails"])[:500])
        if (
            message.get("method") == "Log.entryAdded"
            and message["params"]["entry"]["level"] == "error"
        ):
            self.errors.append(message["params"]["entry"]["text"])
        return message

    def value(self, expression: str) -> Any:
        """What an expression of JavaScript gives in the page."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while not self.value(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"{expression} does not hold after {seconds} s")
            time.sleep(0.02)

    def type(self, text: str, selector: str) -> None:
        """Focuses an element and types, as from a keyboard; a line end is the key Enter."""
        self.value(f"document.querySelector({json.dumps(selector)}).focus()")
        for piece in text.splitlines(keepends=True):
            self.call("Input.insertText", text=piece.rstrip("\n"))
            if piece.endswith("\n"):
                for kind in ("keyDown", "keyUp"):
                    self.call(
                        "Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter",
                        windowsVirtualKeyCode=13, **({"text": "\r"} if kind == "keyDown" else {}),
                    )  # fmt: skip

    def click(self, selector: str) -> None:
        """At the middle of an element, as from a mouse."""
        box = self.value(
            f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )
