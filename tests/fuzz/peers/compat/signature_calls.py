# SPDX-License-Identifier: Apache-2.0
"""Calls of a function in every form that its signature allows, asked of two libraries.

A sample is one set of arguments by name. From it come the forms

    position   every parameter that has a place gets its argument by position, defaults written out
    keyword    every parameter gets its argument by keyword
    default    one optional parameter is left out, or all of them
    other      one optional parameter gets another value than its default, by keyword and by position
    nonsense   one optional parameter gets a word that means nothing, or the function an unknown keyword
    recording  the sample as it is, of tensors that require gradients

A library that is held against its namespace is a `Library`, in a file of its own. Each call is judged:

    same       both give the same: values, dtypes, shapes, fields, memory shared or not, gradients
               required or not; or both refuse
    refused    the library answers, and Tenon says by an error what it expects instead
    wider      the library refuses, and Tenon answers
    on purpose a row of the library's table of differences says why
    different  anything else
"""

from __future__ import annotations

import collections
import inspect
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

STATES = ("same", "refused", "wider", "on purpose", "different")
NONSENSE = "nonsense"
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

# Errors of Python itself, which say nothing to a caller of the function.
_UNTIDY = re.compile(
    r"object has no attribute|is not subscriptable|unsupported operand|object is not (callable|iterable)|"
    r"not enough values to unpack|too many values to unpack|NoneType"
)


@dataclass(frozen=True)
class Call:
    """One call of a function, in the library's own values."""

    function: str  # the dotted name in the namespace: "nn.functional.relu"
    form: str
    parameter: str  # the one that the form is about, or ""
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """Calls whose results differ on purpose, and why. `function`, `parameter` and `detail` are regular
    expressions; those of functions and parameters match the whole name."""

    function: str
    reason: str
    parameter: str = ".*"
    form: str = ".*"
    detail: str = ""

    def explains(self, call: Call, detail: str) -> bool:
        """Whether the row speaks of this call."""
        return bool(
            re.fullmatch(self.function, call.function)
            and re.fullmatch(self.parameter, call.parameter)
            and re.fullmatch(self.form, call.form)
            and re.search(self.detail, detail)
        )


class Library(Protocol):
    """What is asked of the file of a library."""

    name: str
    differences: Sequence[Difference]

    def functions(self) -> list[str]:
        """The public functions of the namespace, by dotted names."""

    def theirs(self, function: str) -> Callable[..., Any] | None:
        """The library's function, None if it has none of the name."""

    def ours(self, function: str) -> Callable[..., Any]:
        """The namespace's function."""

    def signatures(self, function: str) -> list[inspect.Signature]:
        """The ways to call the library's function."""

    def samples(self, function: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
        """Arguments that the library serves, each positional ones and keywords."""

    def alternatives(
        self, function: str, parameter: inspect.Parameter, arguments: dict[str, Any]
    ) -> Iterable[Any]:
        """Other values for a parameter."""

    def fresh(self, value: Any) -> Any:
        """A copy of an argument, so that a call that writes leaves the sample as it is."""

    def recording(self, value: Any) -> Any:
        """An argument whose tensors require gradients, where their dtype has them."""

    def to_ours(self, value: Any) -> Any:
        """An argument as Tenon takes it; LookupError where Tenon has no counterpart."""

    def difference(
        self, function: str, ours: Any, our_arguments: Any, theirs: Any, their_arguments: Any
    ) -> str | None:
        """How results differ, or None. Arguments are given to see what shares their memory."""

    def describe(self, value: Any) -> str:
        """An argument in a report."""


def text_of(library: Library, call: Call) -> str:
    """The call as a report shows it."""
    given = [library.describe(each) for each in call.args]
    given += [f"{name}={library.describe(each)}" for name, each in call.kwargs.items()]
    return f"{call.function}({', '.join(given)})"


def bind(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any] | None:
    """Arguments by name, None if the signature does not take them."""
    try:
        return dict(signature.bind(*args, **kwargs).arguments)
    except TypeError:
        return None


def _by_place(
    signature: inspect.Signature, arguments: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """By position up to the last parameter that is given; None where a default between is unknown."""
    args: list[Any] = []
    waiting: list[Any] = []
    kwargs = {}
    for parameter in signature.parameters.values():
        given = parameter.name in arguments
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            if given and waiting:
                return None
            args.extend(arguments.get(parameter.name, ()))
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            kwargs.update(arguments.get(parameter.name, {}))
        elif parameter.kind not in _BY_PLACE:
            if given:
                kwargs[parameter.name] = arguments[parameter.name]
        elif given:
            args += [*waiting, arguments[parameter.name]]
            waiting = []
        else:
            waiting.append(parameter.default)
    return tuple(args), kwargs


def _by_keyword(
    signature: inspect.Signature, arguments: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """By keyword, apart from parameters that have a position alone."""
    args: list[Any] = []
    kwargs = {}
    variadic = any(
        p.kind is inspect.Parameter.VAR_POSITIONAL and arguments.get(p.name)
        for p in signature.parameters.values()
    )
    for parameter in signature.parameters.values():
        if parameter.name not in arguments:
            continue
        value = arguments[parameter.name]
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            args.extend(value)
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            kwargs.update(value)
        elif parameter.kind is inspect.Parameter.POSITIONAL_ONLY or (
            variadic and parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        ):
            args.append(value)
        else:
            kwargs[parameter.name] = value
    return tuple(args), kwargs


def forms(
    library: Library, function: str, signature: inspect.Signature, arguments: dict[str, Any]
) -> Iterator[Call]:
    """The calls of one sample by one signature."""
    optional = [
        p
        for p in signature.parameters.values()
        if p.default is not inspect.Parameter.empty
        and p.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    ]

    def call(form: str, parameter: str, made: Any) -> Iterator[Call]:
        if made is not None:
            yield Call(function, form, parameter, *made)

    yield from call("position", "", _by_place(signature, arguments))
    yield from call("keyword", "", _by_keyword(signature, arguments))
    required = {k: v for k, v in arguments.items() if k not in {p.name for p in optional}}
    if len(required) < len(arguments):
        yield from call("default", "", _by_keyword(signature, required))
    for parameter in optional:
        name = parameter.name
        if name in arguments and len(required) + 1 < len(arguments):
            left = {k: v for k, v in arguments.items() if k != name}
            yield from call("default", name, _by_keyword(signature, left))
        for value in library.alternatives(function, parameter, arguments):
            for base in (arguments, required) if len(required) < len(arguments) else (arguments,):
                yield from call("other", name, _by_keyword(signature, base | {name: value}))
            if parameter.kind in _BY_PLACE:
                yield from call("other", name, _by_place(signature, required | {name: value}))
        yield from call("nonsense", name, _by_keyword(signature, arguments | {name: NONSENSE}))
    args, kwargs = _by_keyword(signature, arguments)
    yield Call(function, "nonsense", NONSENSE, args, kwargs | {NONSENSE: 1})
    recorded = {name: library.recording(value) for name, value in arguments.items()}
    yield from call("recording", "", _by_place(signature, recorded))


def _answer(function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, Exception | None]:
    try:
        return function(*args, **kwargs), None
    except Exception as error:  # which errors a library raises is what is looked at
        return None, error


def judge(library: Library, call: Call) -> tuple[str, str] | None:
    """The state of a call and what is to be said of it; None where Tenon cannot hold an argument."""
    their_args, their_kwargs = library.fresh(call.args), library.fresh(call.kwargs)
    try:
        our_args, our_kwargs = library.to_ours(their_args), library.to_ours(their_kwargs)
    except LookupError:
        return None
    their_function = library.theirs(call.function)
    assert their_function is not None
    theirs, their_error = _answer(their_function, their_args, their_kwargs)
    ours, our_error = _answer(library.ours(call.function), our_args, our_kwargs)
    if their_error is not None and our_error is not None:
        return "same", ""
    if their_error is not None:
        state, detail = "wider", f"{library.name}: {_line(their_error)}"
        if call.form == "nonsense":
            state, detail = "different", f"accepted; {detail}"
    elif our_error is not None:
        detail = _line(our_error)
        state = "refused" if _is_tidy(our_error) else "different"
    else:
        found = library.difference(
            call.function, ours, (our_args, our_kwargs), theirs, (their_args, their_kwargs)
        )
        state, detail = ("same", "") if found is None else ("different", found)
    if state != "same" and any(row.explains(call, detail) for row in library.differences):
        state = "on purpose"
    return state, detail


def _line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def _is_tidy(error: Exception) -> bool:
    """Whether an error is one for the caller: it says what was expected."""
    text = str(error)
    return bool(re.search(r"\bexpected\b", text)) and not _UNTIDY.search(text)


@dataclass
class Report:
    """What was found, function by function."""

    counts: dict[str, collections.Counter[str]] = field(default_factory=dict)
    # The first call of each (function, form, parameter) that is not "same", by its state.
    found: dict[tuple[str, str, str, str], str] = field(default_factory=dict)
    unasked: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, library: Library, call: Call, state: str, detail: str) -> None:
        self.counts.setdefault(call.function, collections.Counter())[state] += 1
        key = (state, call.function, call.form, call.parameter)
        if state != "same" and key not in self.found:
            self.found[key] = f"{text_of(library, call)}: {detail}"

    def total(self) -> collections.Counter[str]:
        return sum(self.counts.values(), collections.Counter())

    def differences(self) -> list[str]:
        return [text for (state, *_), text in self.found.items() if state == "different"]

    def show(self, library: Library, listed: Sequence[str]) -> None:
        for state in listed:
            for (found, _, form, parameter), text in self.found.items():
                if found == state:
                    print(f"{state:10s} [{form}{' ' + parameter if parameter else ''}] {text}")
        if self.unasked:
            print(f"without a call: {' '.join(self.unasked)}")
        total = self.total()
        print(
            f"{library.name}: {len(self.counts)} functions, {sum(total.values())} calls in "
            f"{self.seconds:.0f} s: " + ", ".join(f"{total[each]} {each}" for each in STATES)
        )


def check(
    library: Library,
    only: Sequence[str] = (),
    minutes: float = 1.0,
    samples: int = 4,
    progress: Callable[[list[str]], Iterable[str]] = iter,
) -> Report:
    """Asks the calls of up to `samples` samples of each function, for at most `minutes`."""
    report = Report()
    start = time.monotonic()
    names = [each for each in library.functions() if not only or each in only]
    for name in progress(names):
        if time.monotonic() - start > 60 * minutes:
            report.unasked += names[names.index(name) :]
            break
        if library.theirs(name) is None or not _ask(library, name, samples, report):
            report.unasked.append(name)
    report.seconds = time.monotonic() - start
    return report


def _ask(library: Library, name: str, samples: int, report: Report) -> bool:
    """Asks the calls of one function; False if there was none."""
    asked = False
    signatures = library.signatures(name)
    for index, (args, kwargs) in enumerate(library.samples(name)):
        if index == samples:
            break
        for signature in signatures:
            arguments = bind(signature, args, kwargs)
            if arguments is None:
                continue
            served = [
                made is not None and _answer(library.theirs(name), *library.fresh(made))[1] is None  # type: ignore[arg-type]
                for made in (_by_keyword(signature, arguments), _by_place(signature, arguments))
            ]
            for call in forms(library, name, signature, arguments):
                # A sample that is not served belongs to another signature, or has no keywords.
                if not served[call.form in ("position", "recording")]:
                    continue
                judged = judge(library, call)
                if judged is not None:
                    asked = True
                    report.add(library, call, *judged)
    return asked
