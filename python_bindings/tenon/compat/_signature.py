# SPDX-License-Identifier: Apache-2.0
"""Functions that are called as another library's: its parameters, in its order, with its defaults.

A namespace has a table of signatures, a line each, and `bound()` puts a function behind one of
them. What the function does not compute is refused with a sentence when it is given, never dropped.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tenon import _core
from tenon._core import Tensor
from tenon._spellings import SIGNATURES
from tenon.compat._adapt import Namespace
from tenon.ops._schema import parameters

# Parameters whose default is a number, for which there are words as well: "SAME", "fro".
_WORDS_TOO = {"padding", "p", "ord"}


class _LeftOut:
    """The default of a parameter that has no value when it is left out."""

    def __repr__(self) -> str:
        return "<left out>"


LEFT_OUT = _LeftOut()


def table(text: str, **constants: Any) -> dict[str, inspect.Signature]:
    """Signatures by name, of lines `name name(x, axis=None, out=no)`: names that share one stand
    before the parenthesis. `no` is LEFT_OUT, and `constants` are other names of defaults."""
    found = {}
    known = {"__builtins__": {}, "no": LEFT_OUT, "int": int, "float": float, **constants}
    for line in filter(None, map(str.strip, text.splitlines())):
        names, _, parameters = line.partition("(")
        made = inspect.signature(eval(f"lambda {parameters.removesuffix(')')}: None", known))
        found.update(dict.fromkeys(names.split(), made))
    return found


def of_operators(library: str) -> dict[str, inspect.Signature]:
    """Those that the operator files give: by them operators are called."""
    names = SIGNATURES.get(library, {}).items()
    return table("\n".join(f"{name}{text}" for name, text in names if "." not in name))


def is_same(value: Any, default: Any) -> bool:
    """Whether an argument says what its default says. Tensors never do."""
    if value is default:
        return True
    if isinstance(value, Tensor) or hasattr(value, "__array__"):
        return False
    if isinstance(value, (list, tuple)) and isinstance(default, (list, tuple)):
        return list(value) == list(default)
    return type(value) is type(default) and value == default


def deliver(where: str, result: Any, out: Any) -> Any:
    """`result` written into `out`, a tensor or as many as there are results; returns `out`."""
    if isinstance(result, (list, tuple)):
        if not isinstance(out, (list, tuple)) or len(out) != len(result):
            raise TypeError(f"{where}(): expected `out` to be {len(result)} tensors, got {out!r}")
        parts = [
            value if to is None else deliver(where, value, to)
            for value, to in zip(result, out, strict=True)
        ]
        return tuple(parts)
    if isinstance(out, (list, tuple)) and len(out) == 1:
        out = out[0]
    check_out(where, result, out)
    _core.operator("clone")(result.to(dtype=out.dtype), out=out)
    return out


def check_out(where: str, result: Tensor, out: Any) -> None:
    """An error where `out` does not hold `result`: neither shape nor kind may be narrower."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{where}(): expected `out` to be a tensor, got {type(out).__name__}")
    if tuple(out.shape) != tuple(result.shape):
        raise ValueError(
            f"{where}(): expected `out` of shape {tuple(result.shape)}, got {tuple(out.shape)}"
        )
    ranks = [_rank(each.dtype) for each in (result, out)]
    if ranks[0] > ranks[1]:
        raise TypeError(
            f"{where}(): expected `out` of a dtype that holds {result.dtype}, got {out.dtype}"
        )
    if ranks[0] == ranks[1] == 1 and result.dtype.itemsize > out.dtype.itemsize:
        raise TypeError(
            f"{where}(): expected `out` of a dtype that holds {result.dtype}, got {out.dtype}"
        )


def _rank(dtype: Any) -> int:
    if dtype.is_complex:
        return 3
    if dtype.is_floating_point:
        return 2
    return 1 if dtype.is_integer else 0


def bound(
    where: str,
    signature: inspect.Signature,
    function: Callable[..., Any],
    *,
    ignored: frozenset[str] = frozenset(),
    aliases: Mapping[str, str] | None = None,
    by_position: list[str] | None = None,
) -> Callable[..., Any]:
    """`function` behind `signature`. `where` names it in errors.

    Arguments go to the parameters of the same names, or with `by_position`, the names of an
    operator's parameters, to those in the same order. `ignored` say nothing about the result.
    `aliases` are further keywords. `out` is written here where the function has none."""
    theirs = list(signature.parameters.values())
    own = _own_parameters(function) if by_position is None else None
    passes = _passes(theirs, own, by_position)
    variadic = next((each.name for each in theirs if each.kind is each.VAR_POSITIONAL), None)
    more = next((each.name for each in theirs if each.kind is each.VAR_KEYWORD), None)
    takes_more = own is not None and any(each.kind is each.VAR_KEYWORD for each in own.values())
    direct = _direct(theirs, own)
    numeric = {
        each.name
        for each in theirs
        if type(each.default) in (bool, int, float) and each.name not in _WORDS_TOO
    }
    other_names = {
        alias: name
        for alias, name in (aliases or {}).items()
        if name in signature.parameters and alias not in signature.parameters
    }

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and len(args) <= direct and str not in map(type, args):
            return function(*args)
        for alias in [each for each in kwargs if each in other_names]:
            name = other_names[alias]
            if name in kwargs:
                raise TypeError(f"{where}(): expected one of `{name}` and `{alias}`, got both")
            kwargs[name] = kwargs.pop(alias)
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{where}(): expected {signature}: {error}") from None
        positional: list[Any] = []
        named: dict[str, Any] = {}
        out = None
        for each in theirs:
            if each.name in (variadic, more):
                continue
            value = given.get(each.name, each.default)
            if type(value) is str and each.name in numeric:
                raise TypeError(
                    f"{where}(): expected `{each.name}` to be a {type(each.default).__name__}, got "
                    f"{value!r}"
                )
            if each.name in passes:
                if value is not LEFT_OUT:
                    named[passes[each.name]] = value
            elif each.name == "out":
                out = value
            elif each.name not in ignored and not is_same(value, each.default):
                raise TypeError(
                    f"{where}(): expected `{each.name}` to be left out, which Tenon does not take "
                    f"here, got {value!r}"
                )
        if variadic is not None:
            positional = list(given.get(variadic, ()))
            leading = [each.name for each in theirs if each.kind is each.POSITIONAL_OR_KEYWORD]
            positional = [named.pop(passes[name]) for name in leading] + positional
        elif by_position is None:
            positional = [named.pop(name) for name in positional_only if name in named]
        else:
            positional = []
        if more is not None:
            further = given.get(more, {})
            unknown = [] if takes_more else sorted(set(further) - ignored)
            if unknown:
                raise TypeError(f"{where}(): expected no further keywords, got {unknown}")
            named.update({key: value for key, value in further.items() if key not in ignored})
        result = function(*positional, **named)
        if out is None or (isinstance(out, tuple) and all(each is None for each in out)):
            return result
        return deliver(where, result, out)

    positional_only = [
        name for name, each in (own or {}).items() if each.kind is inspect.Parameter.POSITIONAL_ONLY
    ]
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _own_parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


def _passes(
    theirs: list[inspect.Parameter],
    own: Mapping[str, inspect.Parameter] | None,
    by_position: list[str] | None,
) -> dict[str, str]:
    """Which parameter of the function takes each of the other library's."""
    if by_position is not None:
        counted = [each.name for each in theirs if each.name not in ("out", "name")]
        return dict(zip(counted, by_position, strict=False))
    assert own is not None
    if any(each.kind is each.VAR_KEYWORD for each in own.values()):
        return {each.name: each.name for each in theirs}
    return {each.name: each.name for each in theirs if each.name in own}


def _direct(theirs: list[inspect.Parameter], own: Mapping[str, inspect.Parameter] | None) -> int:
    """How many leading arguments mean the same in both, so that they are handed on as they are."""
    if own is None or any(
        each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in own.values()
    ):
        return -1
    count, mine = 0, list(own.values())
    for a, b in zip(theirs, mine, strict=False):
        if a.name != b.name or a.kind is a.KEYWORD_ONLY or b.kind is b.KEYWORD_ONLY:
            break
        count += 1
    required, needed = (
        sum(each.default is each.empty for each in several) for several in (theirs, mine)
    )
    if needed > required:
        return -1
    rest = {each.name: each for each in theirs}
    for each in mine:
        default = rest[each.name].default if each.name in rest else each.default
        if each.default is not each.empty and default is not each.default:
            if default is LEFT_OUT:
                continue
            if not is_same(default, each.default):
                return -1
    return count if count >= required else -1


class SignedNamespace(Namespace):
    """A namespace whose functions are called by the signatures of a table, in the module `signatures` as FUNCTIONS."""

    def __init__(
        self,
        *given: Any,
        signatures: str,
        ignored: Iterable[str] = (),
        aliases: Mapping[str, str] | None = None,
        **named: Any,
    ) -> None:
        super().__init__(*given, **named)
        self._table = signatures
        self._ignored = frozenset(ignored)
        self._aliases = aliases or {}

    @functools.cached_property
    def signatures(self) -> dict[str, inspect.Signature]:
        """The signatures by name."""
        return importlib.import_module(self._table).FUNCTIONS

    def _in_place(self, name: str) -> Any:
        """The operator in place of a name that ends in "_", if there is one."""
        if name.endswith("_") and name[:-1] in self.operators:
            with contextlib.suppress(AttributeError):
                return _core.operator(f"{self.operators[name[:-1]]}_")
        return None

    def find(self, name: str) -> Any:
        """What the library calls `name`, behind its signature; AttributeError if it is not covered."""
        value = None if name in self.own else self._in_place(name)
        in_place = value is not None
        base = name[:-1] if in_place else name
        if not in_place:
            value = super().find(name)
        signature = self.signatures.get(base)
        if signature is None or not callable(value):
            return value
        by_position = None
        if base in self.operators and base not in self.own:
            by_position = [each.name for each in parameters(value.schema)]
        if in_place:  # the result is the first argument
            kept = [each for each in signature.parameters.values() if each.name != "out"]
            signature = signature.replace(parameters=kept)
        return bound(
            f"tenon.compat.{self.library}.{name}",
            signature,
            value,
            ignored=self._ignored,
            aliases=self._aliases,
            by_position=by_position,
        )
