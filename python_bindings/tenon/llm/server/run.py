# SPDX-License-Identifier: Apache-2.0
"""Serve an application with uvicorn, and end in order."""

from __future__ import annotations

from .application import Application


def serve(application: Application, host: str, port: int, drain_seconds: int = 30) -> None:
    """Answer until SIGTERM or SIGINT. Then no connection is taken any more, what runs may end within
    `drain_seconds`, and the engine stops. A second signal ends at once."""
    try:
        import uvicorn
    except ImportError as error:
        raise RuntimeError(
            f"serving needs uvicorn ({error}): install it with pip install '.[serve]' in a checkout, "
            "or uvicorn, httptools and uvloop beside this package"
        ) from None

    class Server(uvicorn.Server):
        def handle_exit(self, sig, frame):
            application.draining = True
            super().handle_exit(sig, frame)

    config = uvicorn.Config(
        application,
        host=host,
        port=port,
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=drain_seconds,
    )
    Server(config).run()
