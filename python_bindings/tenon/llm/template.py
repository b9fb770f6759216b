# SPDX-License-Identifier: Apache-2.0
"""Chat templates: messages to the text of a prompt.

A template comes with a checkpoint, so it is hostile input: it runs in jinja2's immutable sandbox, for
at most a second, and makes at most a MiB.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

MAX_SECONDS = 1.0
MAX_CHARACTERS = 1 << 20


class TemplateError(ValueError):
    """What is wrong with a template, or what it says of the messages."""


class ChatTemplate:
    """A template of jinja2. `special` are texts that it may name: `bos_token`, `eos_token` and so on.

    Needs the library `jinja2`: `pip install 'tenon-dl[llm]'`.
    """

    def __init__(self, text: str, special: Mapping[str, str] | None = None) -> None:
        try:
            from jinja2 import TemplateSyntaxError
        except ImportError as error:
            raise ImportError(
                "ChatTemplate: expected the library `jinja2`; run `pip install 'tenon-dl[llm]'`"
            ) from error
        self._special = dict(special or {})
        try:
            self._template = _environment().from_string(text)
        except TemplateSyntaxError as error:
            raise TemplateError(f"chat template, line {error.lineno}: {error.message}") from None

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        add_generation_prompt: bool = True,
        **variables: Any,
    ) -> str:
        """The prompt of `messages`, each {"role": ..., "content": ...}; `variables` are the template's
        own, such as `tools` or `enable_thinking`."""
        values = {
            **self._special,
            **variables,
            "messages": list(messages),
            "add_generation_prompt": add_generation_prompt,
        }
        deadline = time.monotonic() + MAX_SECONDS

        def watch(frame: Any, event: str, argument: Any) -> Any:
            # A template is compiled to Python, so even loops that write nothing come by here.
            if time.monotonic() > deadline:
                raise TemplateError(f"chat template: expected it to end within {MAX_SECONDS} s")
            return watch

        earlier = sys.gettrace()
        pieces, size = [], 0
        try:
            sys.settrace(watch)
            for piece in self._template.generate(**values):
                size += len(piece)
                if size > MAX_CHARACTERS:
                    raise TemplateError(
                        f"chat template: expected at most {MAX_CHARACTERS} characters, got more"
                    )
                pieces.append(piece)
        except TemplateError:
            raise
        except Exception as error:  # whatever the template provokes
            raise TemplateError(f"chat template: {type(error).__name__}: {error}") from None
        finally:
            sys.settrace(earlier)
        return "".join(pieces)


def _environment() -> Any:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Sandbox(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset(["*", "**", "%"])

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            # One such step could take all memory or time, without a line in between.
            numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
            if not numbers or abs(left) > 1 << 32 or abs(right) > 1 << 32:
                raise TemplateError(f"chat template: '{operator}' is for numbers up to 2^32 only")
            if operator == "**" and abs(right) > 64:
                raise TemplateError(f"chat template: expected an exponent up to 64, got {right}")
            return super().call_binop(context, operator, left, right)

    environment = Sandbox(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = _raise
    environment.filters["tojson"] = _as_json
    return environment


def _raise(message: str) -> None:
    raise TemplateError(f"chat template: {message}")


def _as_json(value: Any, indent: int | None = None, ensure_ascii: bool = False) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=ensure_ascii)
