# SPDX-License-Identifier: Apache-2.0
"""Reader of pickles that holds no way to run code.

Python's own unpickler imports what a file names and calls it. This one is a stack machine for the
part of the format that data needs: numbers, text, bytes, lists, tuples, dicts, sets, and the few
names that its caller gives it a meaning for. Every other name is refused, with the name in the message.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

MAX_DEPTH: Final = 100  # of tuples that are keys


class PickleError(ValueError):
    """The file holds what this reader refuses, or is damaged."""


class Name:
    """A function of the caller's that the pickle named and has not called."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Built:
    """What a function of the caller returns for an object whose state comes later (BUILD)."""

    def set_state(self, state: Any) -> None:
        raise PickleError(f"{type(self).__name__} takes no state")


class _Mark:
    pass


_MARK: Final = _Mark()
_OPCODES: Final = {opcode.code: opcode.name for opcode in pickletools.opcodes}


class PickleReader:
    """Reads one pickle.

    `functions` maps a dotted name to the function that REDUCE and NEWOBJ call, `names` to the value
    that stands for it, and `persistent` resolves persistent ids.
    """

    def __init__(
        self,
        content: bytes,
        functions: Mapping[str, Callable[..., Any]],
        names: Mapping[str, Any] = {},
        persistent: Callable[[Any], Any] | None = None,
    ) -> None:
        self._content = content
        self._functions = {**_FUNCTIONS, **functions}
        self._names = names
        self._persistent = persistent
        self._at = 0
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def read(self) -> Any:
        """The object. What follows it in the file is left alone."""
        try:
            while True:
                opcode = chr(self._bytes(1)[0])
                if opcode == ".":
                    return _finished(self._pop())
                action = _ACTIONS.get(opcode)
                if action is None:
                    known = _OPCODES.get(opcode, repr(opcode))
                    raise PickleError(f"opcode {known} is not one that tensors and containers need")
                action(self)
        except (TypeError, IndexError, KeyError, ValueError, OverflowError, struct.error) as error:
            if isinstance(error, PickleError):
                raise PickleError(f"byte {self._at}: {error}") from None
            raise PickleError(f"byte {self._at}: the pickle is damaged ({error})") from None
        except (RecursionError, MemoryError) as error:
            raise PickleError(f"byte {self._at}: {type(error).__name__}") from None

    # -- input -------------------------------------------------------------------------------------

    def _bytes(self, count: int) -> bytes:
        if count < 0 or count > len(self._content) - self._at:
            raise PickleError(f"{count} bytes are announced, and the file ends before")
        self._at += count
        return self._content[self._at - count : self._at]

    def _number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self._bytes(size), "little", signed=signed)

    def _line(self, encoding: str = "utf-8") -> str:
        end = self._content.find(b"\n", self._at)
        if end < 0:
            raise PickleError("a line without end")
        text = self._bytes(end - self._at).decode(encoding)
        self._at += 1
        return text

    # -- stack -------------------------------------------------------------------------------------

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop(self) -> Any:
        if self._stack[-1] is _MARK:
            raise PickleError("an operand is missing")
        return self._stack.pop()

    def _pop_mark(self) -> list[Any]:
        stack = self._stack
        at = len(stack) - 1
        while stack[at] is not _MARK:  # raises IndexError below -len(stack)
            at -= 1
            if at < 0:
                raise PickleError("a mark is missing")
        items = stack[at + 1 :]
        del stack[at:]
        return items

    def _top(self, kind: type | tuple[type, ...]) -> Any:
        value = self._stack[-1]
        if type(value) not in (kind if isinstance(kind, tuple) else (kind,)):
            raise PickleError(f"expected a container, got {type(value).__name__}")
        return value

    # -- opcodes -----------------------------------------------------------------------------------

    def _global(self, module: str, name: str) -> None:
        # Python 2's module of built-in names is that of Python 3.
        full = f"{'builtins' if module == '__builtin__' else module}.{name}"
        if full in self._functions:
            return self._push(Name(full))
        if full in self._names:
            return self._push(self._names[full])
        raise PickleError(
            f"it names {full!r}, which is neither a tensor nor a container; such files can run any "
            "code when Python's pickle reads them, so that this reader refuses. Save the state "
            "dict alone, or as safetensors"
        )

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if type(name) is not str or type(module) is not str:
            raise PickleError("a name that is no text")
        self._global(module, name)

    def _reduce(self) -> None:
        arguments, function = self._pop(), self._pop()
        if type(arguments) is not tuple:
            raise PickleError("expected a tuple of arguments")
        if type(function) is not Name or function.name not in self._functions:
            raise PickleError(f"a call of {getattr(function, 'name', type(function).__name__)!r}")
        self._push(self._functions[function.name](*arguments))

    def _build(self) -> None:
        state = self._pop()
        value = self._stack[-1]
        if isinstance(value, Built):
            value.set_state(state)
        elif type(value) is not dict or type(state) is not dict:
            # Attributes of an OrderedDict, such as a state dict's versions, are left out.
            raise PickleError(f"a state for {type(value).__name__}")

    def _memoize(self, index: int) -> None:
        value = self._stack[-1]
        if value is _MARK:
            raise PickleError("a mark cannot be stored")
        self._memo[index] = value

    def _set_items(self, items: list[Any]) -> None:
        target = self._top(dict)
        if len(items) % 2:
            raise PickleError("a key without a value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[_checked_key(key)] = value

    def _persistent_id(self) -> None:
        if self._persistent is None:
            raise PickleError("a persistent id, which only files of PyTorch have")
        self._push(self._persistent(self._pop()))


def _finished(value: Any) -> Any:
    if value is _MARK or type(value) is Name:
        raise PickleError("it holds no data")
    return value


def _checked_key(key: Any, depth: int = 0) -> Any:
    """The hash of a deep tuple would overflow the stack, and that of other objects is theirs."""
    if type(key) is tuple and depth < MAX_DEPTH:
        for item in key:
            _checked_key(item, depth + 1)
    elif key is not None and type(key) not in (bool, int, float, complex, str, bytes):
        raise PickleError(f"a key of type {type(key).__name__}")
    return key


def _tuple(reader: PickleReader, count: int) -> None:
    items = [reader._pop() for _ in range(count)]
    reader._push(tuple(reversed(items)))


def _dict(items: list[Any]) -> dict:
    if len(items) % 2:
        raise PickleError("a key without a value")
    return {_checked_key(k): v for k, v in zip(items[::2], items[1::2], strict=True)}


def _set(items: Any = ()) -> set:
    if type(items) not in (list, tuple):
        raise PickleError("a set of something that is no list")
    return {_checked_key(item) for item in items}


def _ordered_dict(pairs: Any = ()) -> dict:
    if type(pairs) not in (list, tuple):
        raise PickleError("an OrderedDict of something that is no list")
    return {_checked_key(key): value for key, value in pairs}


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    # How Python 3 writes bytes for protocol 2.
    if type(text) is not str or encoding not in ("latin1", "latin-1"):
        raise PickleError("bytes in an unknown encoding")
    return text.encode("latin1")


def _no_bytes() -> bytes:
    # How Python 3 writes empty bytes for protocol 2.
    return b""


def _complex(real: Any, imaginary: Any = 0.0) -> complex:
    if not all(type(part) in (int, float) for part in (real, imaginary)):
        raise PickleError("a complex number of something that is no number")
    return complex(real, imaginary)


# What every pickle may call.
_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "_codecs.encode": _encode,
    "builtins.bytes": _no_bytes,
    "builtins.complex": _complex,
    "builtins.frozenset": lambda items=(): frozenset(_set(items)),
    "builtins.set": _set,
    "collections.OrderedDict": _ordered_dict,
}


def _long_text(text: str) -> int:
    if len(text) > 400:  # int() takes quadratic time
        raise PickleError(f"a number of {len(text)} digits")
    return int(text.removesuffix("L"))


def _int_text(text: str) -> int | bool:
    return text == "01" if text in ("00", "01") else _long_text(text)


def _protocol(reader: PickleReader) -> None:
    version = reader._number(1)
    if version > 5:
        raise PickleError(f"protocol {version}; known are 0 to 5")


def _append(reader: PickleReader) -> None:
    value = reader._pop()
    reader._top(list).append(value)


def _extend(reader: PickleReader) -> None:
    items = reader._pop_mark()
    reader._top(list).extend(items)


def _set_item(reader: PickleReader) -> None:
    value, key = reader._pop(), reader._pop()
    reader._set_items([key, value])


def _add_items(reader: PickleReader) -> None:
    items = reader._pop_mark()
    reader._top(set).update(_set(items))


def _text(reader: PickleReader, size: int) -> str:
    return reader._bytes(reader._number(size)).decode("utf-8", "surrogatepass")


_Action = Callable[[PickleReader], Any]
_ACTIONS: Final[dict[str, _Action]] = {
    "\x80": _protocol,
    "\x95": lambda r: r._number(8),  # FRAME: its length says nothing that the opcodes do not
    "(": lambda r: r._push(_MARK),
    "0": lambda r: r._stack.pop(),
    "1": lambda r: r._pop_mark(),
    "2": lambda r: r._push(_finished(r._stack[-1])),
    # numbers
    "N": lambda r: r._push(None),
    "\x88": lambda r: r._push(True),
    "\x89": lambda r: r._push(False),
    "I": lambda r: r._push(_int_text(r._line())),
    "J": lambda r: r._push(r._number(4, signed=True)),
    "K": lambda r: r._push(r._number(1)),
    "M": lambda r: r._push(r._number(2)),
    "L": lambda r: r._push(_long_text(r._line())),
    "\x8a": lambda r: r._push(r._number(r._number(1), signed=True)),
    "\x8b": lambda r: r._push(r._number(r._number(4), signed=True)),
    "F": lambda r: r._push(float(r._line())),
    "G": lambda r: r._push(struct.unpack(">d", r._bytes(8))[0]),
    # text and bytes; Python 2 had one type for both
    "X": lambda r: r._push(_text(r, 4)),
    "\x8c": lambda r: r._push(_text(r, 1)),
    "\x8d": lambda r: r._push(_text(r, 8)),
    "V": lambda r: r._push(r._line("raw-unicode-escape")),
    "T": lambda r: r._push(r._bytes(r._number(4)).decode("latin1")),
    "U": lambda r: r._push(r._bytes(r._number(1)).decode("latin1")),
    "B": lambda r: r._push(r._bytes(r._number(4))),
    "C": lambda r: r._push(r._bytes(r._number(1))),
    "\x8e": lambda r: r._push(r._bytes(r._number(8))),
    "\x96": lambda r: r._push(r._bytes(r._number(8))),
    # containers
    ")": lambda r: r._push(()),
    "\x85": lambda r: _tuple(r, 1),
    "\x86": lambda r: _tuple(r, 2),
    "\x87": lambda r: _tuple(r, 3),
    "t": lambda r: r._push(tuple(r._pop_mark())),
    "]": lambda r: r._push([]),
    "l": lambda r: r._push(r._pop_mark()),
    "a": _append,
    "e": _extend,
    "}": lambda r: r._push({}),
    "d": lambda r: r._push(_dict(r._pop_mark())),
    "s": _set_item,
    "u": lambda r: r._set_items(r._pop_mark()),
    "\x8f": lambda r: r._push(set()),
    "\x90": _add_items,
    "\x91": lambda r: r._push(frozenset(_set(r._pop_mark()))),
    # memo
    "p": lambda r: r._memoize(_long_text(r._line())),
    "q": lambda r: r._memoize(r._number(1)),
    "r": lambda r: r._memoize(r._number(4)),
    "\x94": lambda r: r._memoize(len(r._memo)),
    "g": lambda r: r._push(r._memo[_long_text(r._line())]),
    "h": lambda r: r._push(r._memo[r._number(1)]),
    "j": lambda r: r._push(r._memo[r._number(4)]),
    # names and what they make
    "c": lambda r: r._global(r._line(), r._line()),
    "\x93": PickleReader._stack_global,
    "R": PickleReader._reduce,
    "\x81": PickleReader._reduce,  # NEWOBJ: a class without its __init__
    "b": PickleReader._build,
    "Q": PickleReader._persistent_id,
}
