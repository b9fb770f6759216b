# SPDX-License-Identifier: Apache-2.0
"""Functions that are called by the signature of another library, exactly: a parameter that the signature
lacks, that is given twice, or that has no counterpart in Tenon is an error."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tenon import _core
from tenon.compat._signature import LEFT_OUT
from tenon.ops._schema import parameters

# Options are taken out of the arguments before the call. Each gets the name of the function, the function as it then
# is, the arguments that are left by the library's names, and all options that were given. It gives the function to
# call instead.
Option = Callable[[str, Callable[..., Any], dict[str, Any], Mapping[str, Any]], Callable[..., Any]]

_REQUIRED = inspect.Parameter.empty
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_NOTHING: Mapping[str, Any] = {}
# Parameters whose default is a number or a truth, for which there are other values: "SAME", "fro", an array, "greedy".
_ANY_VALUE = {"padding", "p", "ord", "where", "optimize"}


class _Own(NamedTuple):
    """The parameters of Tenon's function."""

    defaults: dict[str, Any]  # by name, without variadic ones
    by_place: list[str]  # those that take a value by position, in order
    by_place_alone: list[str]  # those without a keyword
    is_variadic: bool
    takes_more: bool  # any keywords


def _own(function: Callable[..., Any]) -> _Own:
    if isinstance(function, type(_core.operator("add"))):
        defaults = {each.name: each.default for each in parameters(function.schema)}
        return _Own(defaults, list(defaults), [], False, False)
    given = inspect.signature(function).parameters.values()
    kinds = {each.kind for each in given}
    return _Own(
        {each.name: each.default for each in given if each.kind not in _VARIADIC},
        [each.name for each in given if each.kind in _BY_PLACE],
        [each.name for each in given if each.kind is inspect.Parameter.POSITIONAL_ONLY],
        not kinds.isdisjoint(_VARIADIC),
        inspect.Parameter.VAR_KEYWORD in kinds,
    )


def _matched(
    theirs: Iterable[inspect.Parameter], ours: list[str], words: Mapping[str, tuple[str, ...]]
) -> dict[str, str]:
    """What Tenon calls each parameter: the same; if it must be given, the next one that is left; else what `words`
    says."""
    found = {each.name: each.name for each in theirs if each.name in ours}

    def free() -> list[str]:
        return [name for name in ours if name not in found.values()]

    for each in theirs:
        if each.name not in found and each.default is _REQUIRED and free():
            found[each.name] = free()[0]
    for each in theirs:
        word = next((name for name in words.get(each.name, ()) if name in free()), None)
        if each.name not in found and word is not None:
            found[each.name] = word
    return found


class _Caller:
    """The arguments of one function, from the library's signature to Tenon's."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        theirs: inspect.Signature,
        names: Mapping[str, str] | None,
        words: Mapping[str, tuple[str, ...]],
        synonyms: Mapping[str, tuple[str, ...]],
        options: Mapping[str, Option],
        ignored: frozenset[str],
    ) -> None:
        self.name, self.function, self.signature = name, function, theirs
        named = [p for p in theirs.parameters.values() if p.kind not in _VARIADIC]
        kinds = {p.kind for p in theirs.parameters.values()}
        self.variadic = inspect.Parameter.VAR_POSITIONAL in kinds
        self.more = inspect.Parameter.VAR_KEYWORD in kinds
        self.positional = [p.name for p in named if p.kind in _BY_PLACE]
        self.known = {p.name: p for p in named}
        self.keywords = {p.name for p in named if p.kind is not inspect.Parameter.POSITIONAL_ONLY}
        self.flags = {
            p.name
            for p in named
            if (isinstance(p.default, bool) or str(p.annotation)[:4] == "bool")
            and p.name not in _ANY_VALUE
        }
        self.numbers = {p.name for p in named if _is_number(p)}
        self.synonyms = {
            synonym: next(name for name in names if name in self.known)
            for synonym, names in synonyms.items()
            if synonym not in self.known and any(name in self.known for name in names)
        }
        ours = _own(function)
        own, self.by_place_alone, self.takes_more = (
            ours.defaults,
            ours.by_place_alone,
            ours.takes_more,
        )
        is_operator = isinstance(function, type(_core.operator("add")))
        self.floats = {n for n in own if is_operator and type(own[n]) is float}
        served = [p for p in named if p.name not in options or p.name in own]
        self.options = {n: options[n] for n in self.known if n in options and n not in own}
        self.names = dict(_matched(served, list(own), words) if names is None else names)
        unserved = [p.name for p in served if p.name not in self.names and p.name not in ignored]
        if self.takes_more:
            self.names.update((n, n) for n in unserved)
            unserved = []
        self.ignored = ignored
        self.dropped = {p.name for p in served if p.name in ignored and p.name not in self.names}
        self.unserved = set(unserved)
        # Defaults of the library that are not Tenon's.
        self.filled = {
            n: p.default
            for n, p in self.known.items()
            if n in self.names
            and p.default is not _REQUIRED
            and p.default is not LEFT_OUT
            and not is_same(p.default, own.get(self.names[n], _REQUIRED))
        }
        self.left_out = any(p.default is LEFT_OUT for p in named)
        self.required = {n: None for n, p in self.known.items() if p.default is _REQUIRED}
        # What is looked at when it is given; most calls give nothing of it.
        self.special = (
            self.flags | self.numbers | self.unserved | self.dropped | self.options.keys()
        )
        self.same_names = all(theirs == ours for theirs, ours in self.names.items())
        self.direct = self._direct(ours)

    def _direct(self, own: _Own) -> int:
        """How many arguments may be given by position to Tenon's function as they are."""
        if self.filled or self.variadic or own.is_variadic:
            return -1
        count = 0
        for theirs, ours in zip(self.positional, own.by_place, strict=False):
            if self.names.get(theirs) != ours or theirs in self.flags or theirs in self.options:
                break
            count += 1
        return count

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given: dict[str, Any] = {}
        if not self.variadic:
            if len(args) > len(self.positional):
                raise TypeError(
                    f"{self.name}(): expected at most {len(self.positional)} positional arguments, got "
                    f"{len(args)}; its parameters are {self.signature}"
                )
            given = dict(zip(self.positional, args, strict=False))
            args = ()
        more: dict[str, Any] = {}
        for key, value in kwargs.items():
            name = self.synonyms.get(key, key)
            if name not in self.keywords:
                if self.more and (self.takes_more or key in self.ignored):
                    if key not in self.ignored:
                        more[key] = value
                    continue
                raise TypeError(
                    f"{self.name}(): unknown keyword {key!r}; expected one of the parameters "
                    f"{self.signature}"
                )
            if name in given:
                raise TypeError(
                    f"{self.name}(): expected one value for {name!r}, got two"
                    + (f"; {key!r} is another name of it" if key != name else "")
                )
            given[name] = value
        if not (self.variadic or self.required.keys() <= given.keys()):
            missing = next(name for name in self.required if name not in given)
            raise TypeError(
                f"{self.name}(): expected {missing!r}, got no value for it; its parameters are "
                f"{self.signature}"
            )
        function = self.function
        if not self.special.isdisjoint(given):
            self._check(given)
            chosen = {name: given.pop(name) for name in self.options if name in given}
            for name in chosen:
                function = self.options[name](self.name, function, given, chosen)
        for name, value in self.filled.items():
            given.setdefault(name, value)
        if self.left_out:
            given = {name: value for name, value in given.items() if value is not LEFT_OUT}
        named = given
        if not self.same_names:
            named = {self.names[name]: value for name, value in given.items()}
        for ours in self.floats:
            if type(named.get(ours)) is int:
                named[ours] = float(named[ours])
        if self.by_place_alone:
            args = tuple(named.pop(n) for n in self.by_place_alone if n in named) + args
        if more:
            named = {**named, **more}
        return function(*args, **named)

    def _check(self, given: dict[str, Any]) -> None:
        """Values that are none of their parameters'; what says nothing about the result is dropped."""
        for name in self.dropped & given.keys():
            del given[name]
        for name in self.flags & given.keys():
            value = given[name]
            if not (value is None or isinstance(value, int) or type(value).__module__ == "numpy"):
                raise TypeError(
                    f"{self.name}(): expected True or False for {name!r}, got {value!r}"
                )
        for name in self.numbers & given.keys():
            if isinstance(given[name], str):
                raise TypeError(
                    f"{self.name}(): expected a number for {name!r}, got {given[name]!r}"
                )
        for name in self.unserved & given.keys():
            value, default = given.pop(name), self.known[name].default
            if not is_same(value, default):
                raise NotImplementedError(
                    f"{self.name}(): expected {name}={default!r}, got {value!r}; Tenon has no "
                    f"counterpart for another value"
                )


def _is_number(parameter: inspect.Parameter) -> bool:
    """Whether a word is no value of a parameter: its default is a number, and no type says more."""
    text = str(parameter.annotation)
    if parameter.annotation is not _REQUIRED and ("Any" in text or "str" in text):
        return False
    if parameter.name in _ANY_VALUE:
        return False
    return type(parameter.default) in (int, float)


def is_same(value: Any, default: Any) -> bool:
    """Whether an argument says what its default says. Tensors and arrays never do."""
    if value is default:
        return True
    if value is None or isinstance(value, bool) or isinstance(default, bool):
        return False
    if isinstance(value, (int, float, str)) and isinstance(default, (int, float, str)):
        return value == default
    if isinstance(value, (list, tuple)) and isinstance(default, (list, tuple)):
        return list(value) == list(default)
    if hasattr(value, "__array__"):
        return False
    return type(value) is type(default) and value == default


def by_signature(
    name: str,
    function: Callable[..., Any],
    theirs: inspect.Signature,
    *,
    names: Mapping[str, str] | None = None,
    words: Mapping[str, tuple[str, ...]] = _NOTHING,
    synonyms: Mapping[str, tuple[str, ...]] = _NOTHING,
    options: Mapping[str, Option] = _NOTHING,
    ignored: frozenset[str] = frozenset(),
) -> Callable[..., Any]:
    """`function`, called by the signature `theirs`. `names` says what Tenon calls each parameter, or else `words` what
    it may call one; `synonyms` by which other keywords the library takes one; `options` serves parameters that Tenon's
    function lacks, and `ignored` say nothing about the result."""
    caller = _Caller(name, function, theirs, names, words, synonyms, options, ignored)
    direct, required = caller.direct, len(caller.required)

    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and required <= len(args) <= direct:
            return function(*args)
        return caller(args, kwargs)

    functools.update_wrapper(call, function, updated=())
    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    call.__signature__ = theirs  # type: ignore[attr-defined]
    return call
