"""Serves S3 on a loopback port, in the server's own environment: `python serve.py PORT [HEADER…]`.

Moto checks whether an object exists and then writes it; a store with conditional puts does both atomically. Therefore requests
are processed sequentially. The listed headers are ignored, as by stores that do not support such a condition.
"""

from __future__ import annotations

import sys
from threading import Lock
from typing import TYPE_CHECKING, Any

from moto.server import DomainDispatcherApplication, create_backend_app  # type: ignore[import-not-found]
from werkzeug.serving import run_simple  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from collections.abc import Iterable


class OneAfterTheOther:
    def __init__(self, application: Any, ignored: list[str]) -> None:
        self._application = application
        self._ignored = ["HTTP_" + header.upper().replace("-", "_") for header in ignored]
        self._turn = Lock()

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        for header in self._ignored:
            environ.pop(header, None)
        with self._turn:
            return list(self._application(environ, start_response))


if __name__ == "__main__":
    application = DomainDispatcherApplication(create_backend_app)
    run_simple("127.0.0.1", int(sys.argv[1]), OneAfterTheOther(application, sys.argv[2:]), threaded=True)
