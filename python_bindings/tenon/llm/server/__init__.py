# SPDX-License-Identifier: Apache-2.0
"""OpenAI's API over an engine, as a plain ASGI application."""

from .application import Application
from .errors import ApiError
from .run import serve
from .served import ServedModel, served_model

__all__ = ["ApiError", "Application", "ServedModel", "serve", "served_model"]
