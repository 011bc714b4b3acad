"""Serves S3 on a port of loopback, in the server's own environment: `python serve.py PORT [HEADER…]`.

Moto looks whether an object is there and then puts it; a store that honours conditional puts does both in one step. So requests are
answered one after the other. A header that is named is ignored, as stores do that know no such condition.
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
