# SPDX-License-Identifier: Apache-2.0
"""What a client is told, in the shape of OpenAI's API."""

from __future__ import annotations


class ApiError(Exception):
    """An answer with `status` other than 200. `param` is the field that is at fault, if one is."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ):
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code
        self.headers = headers

    def body(self) -> dict:
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        if self.status == 429:
            kind = "rate_limit_error"
        return {
            "error": {
                "message": str(self),
                "type": kind,
                "param": self.param,
                "code": self.code,
            }
        }


def wrong(field: str, expected: str, got) -> ApiError:
    """400 for a field: what was expected and what came."""
    shown = repr(got)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return ApiError(400, f"{field}: expected {expected}, got {shown}", param=field)
