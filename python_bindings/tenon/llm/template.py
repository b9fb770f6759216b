# SPDX-License-Identifier: Apache-2.0
"""Chat templates: messages to the text of a prompt.

A template comes with a checkpoint, so it is hostile input: it runs in jinja2's immutable sandbox, for
at most a second, makes texts of at most a MiB, and has the filters and methods that cannot make more
in one step.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
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
        self.text = text
        self._special = dict(special or {})
        try:
            self._template = _environment().from_string(text)
        except TemplateSyntaxError as error:
            raise TemplateError(f"chat template, line {error.lineno}: {error.message}") from None
        except (
            Exception
        ) as error:  # its parser follows brackets to the end of the stack, for example
            raise TemplateError(f"chat template: {type(error).__name__}: {error}") from None

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
        # Seconds of computing: what else the machine does takes none of them.
        deadline = time.thread_time() + MAX_SECONDS

        def watch(frame: Any, event: str, argument: Any) -> Any:
            # A template is compiled to Python, so even loops that write nothing come by here.
            if time.thread_time() > deadline:
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


# What makes texts no longer than those it is given, or a few times as long. Others are refused, because
# one step of theirs could take all memory, with no line in between where a deadline is seen.
_METHODS = frozenset(
    """capitalize casefold count endswith find index isalnum isalpha isascii isdecimal isdigit islower
    isnumeric isspace istitle isupper join lower lstrip partition removeprefix removesuffix replace rfind
    rindex rpartition rsplit rstrip split splitlines startswith strip swapcase title upper""".split()
)
_FILTERS = """abs capitalize count d default dictsort e escape first float groupby int items last length
    list lower map max min reject rejectattr reverse round safe select selectattr sort string sum title
    trim unique upper""".split()


def _environment() -> Any:
    from jinja2.compiler import CodeGenerator
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generator(CodeGenerator):
        def visit_Concat(self, node: Any, frame: Any) -> None:
            self.write("environment.joined((")
            for each in node.nodes:
                self.visit(each, frame)
                self.write(", ")
            self.write("))")

    class Sandbox(ImmutableSandboxedEnvironment):
        code_generator_class = Generator
        intercepted_binops = frozenset(["+", "*", "**", "%"])
        concat = staticmethod(lambda pieces: _joined("", pieces))

        def joined(self, values: Sequence[Any]) -> str:
            return _joined("", map(str, values))

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
            if operator == "+" and not numbers:
                _check_size(len(left) + len(right))
                return left + right
            if not numbers or abs(left) > 1 << 32 or abs(right) > 1 << 32:
                raise TemplateError(f"chat template: '{operator}' is for numbers up to 2^32 only")
            if operator == "**" and abs(right) > 64:
                raise TemplateError(f"chat template: expected an exponent up to 64, got {right}")
            return super().call_binop(context, operator, left, right)

        def wrap_str_format(self, value: Any) -> None:
            return None  # format stays a method of a text, which call() refuses

        def call(self, context: Any, function: Any, *values: Any, **named: Any) -> Any:
            text = getattr(function, "__self__", None)
            if isinstance(text, str):
                name = function.__name__
                if name not in _METHODS:
                    raise TemplateError(f"chat template: '{name}' of a text is not known here")
                named = {
                    key: named[key] for key in named if not key.startswith("_")
                }  # jinja2's own
                if name == "join":
                    return _joined(text, *values, **named)
                if name == "replace":
                    return _replaced(text, *values, **named)
            return super().call(context, function, *values, **named)

    environment = Sandbox(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters = {name: environment.filters[name] for name in _FILTERS}
    environment.filters.update(
        tojson=_as_json,
        replace=lambda text, old, new, count=-1: _replaced(str(text), old, new, count),
        join=lambda values, separator="": _joined(separator, map(str, values)),
    )
    environment.globals = {
        name: environment.globals[name] for name in ("range", "dict", "namespace")
    }
    environment.globals["raise_exception"] = _raise
    return environment


def _check_size(characters: int) -> None:
    if characters > MAX_CHARACTERS:
        raise TemplateError(
            f"chat template: expected texts of at most {MAX_CHARACTERS} characters, got {characters}"
        )


def _joined(separator: str, values: Iterable[str]) -> str:
    pieces, size = [], 0
    for piece in values:
        size += len(piece) + len(separator)
        _check_size(size)
        pieces.append(piece)
    return separator.join(pieces)


def _replaced(text: str, old: str, new: str, count: int = -1) -> str:
    indices = text.count(old) if count < 0 else min(text.count(old), count)
    _check_size(len(text) + indices * len(new))
    return text.replace(old, new, count)


def _raise(message: str) -> None:
    raise TemplateError(f"chat template: {message}")


def _as_json(value: Any, indent: int | None = None, ensure_ascii: bool = False) -> str:
    if indent is not None and not 0 <= indent <= 16:
        raise TemplateError(f"chat template: tojson: expected an indent up to 16, got {indent}")
    return json.dumps(value, indent=indent, ensure_ascii=ensure_ascii)
