# SPDX-License-Identifier: Apache-2.0
"""Bodies of requests: JSON and its fields, taken one by one."""

from __future__ import annotations

import json
import logging

from .errors import ApiError, wrong

# Fields that change no answer here, for which clients need no error.
HARMLESS = frozenset(
    ["user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"]
)
_logger = logging.getLogger("tenon.llm.server")
_told: set[str] = set()


def parse_json(body: bytes) -> dict:
    def refuse(name):
        raise ValueError(f"{name} is no number of JSON")

    try:
        # Of bytes json.loads would also take UTF-16, and halves of surrogate pairs.
        value = json.loads(body.decode("utf-8-sig"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"body: expected JSON, got something else: {error}") from None
    if b"\\u" in body:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except (UnicodeEncodeError, RecursionError):
            raise ApiError(
                400, "body: expected texts of Unicode, got half a surrogate pair"
            ) from None
    if not isinstance(value, dict):
        raise ApiError(400, f"body: expected a JSON object, got {type(value).__name__}")
    return value


class Fields:
    """Takes the fields of a body one by one; null is an absent field. `finish` refuses the others."""

    def __init__(self, body: dict):
        self._rest = {name: value for name, value in body.items() if value is not None}

    def take(self, name, default=None):
        return self._rest.pop(name, default)

    def integer(self, name, default, least, most=None):
        value = self.take(name, default)
        if value is default:
            return value
        expected = f"an integer of at least {least}" if most is None else f"{least} to {most}"
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise wrong(name, expected, value)
        if most is not None and value > most:
            raise wrong(name, expected, value)
        return value

    def number(self, name, default, least, most):
        value = self.take(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong(name, "a number", value)
        if not least <= value <= most:
            raise wrong(name, f"a number from {least} to {most}", value)
        return float(value)

    def boolean(self, name, default):
        value = self.take(name, default)
        if not isinstance(value, bool):
            raise wrong(name, "true or false", value)
        return value

    def text(self, name, default=None):
        value = self.take(name, default)
        if value is not default and not isinstance(value, str):
            raise wrong(name, "a text", value)
        return value

    def only(self, name, values, why):
        """A field whose other values are not there yet."""
        value = self.take(name, values[0])
        if value not in values or isinstance(value, bool) != isinstance(values[0], bool):
            shown = " or ".join(json.dumps(one) for one in values)
            raise wrong(name, f"{shown}, as {why}", value)

    def finish(self):
        for name in self._rest:
            if name not in HARMLESS:
                raise ApiError(
                    400, f"{name}: this server knows no such field, or not yet", param=name
                )
            if name not in _told:
                _told.add(name)
                _logger.warning("the field '%s' of a request has no effect here", name)
