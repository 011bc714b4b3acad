"""Check whether a component of the deployment is healthy, for `docker-compose.yml`: `is_healthy.py URL [FIELD=VALUE]`.

It is healthy if the URL answers 200 and, if a field is named (such as `scheduler.status`), the answer is JSON with this value.
Standard library only, so that a check takes a few milliseconds; `airflow jobs check` takes 14 seconds of CPU time.
"""

from __future__ import annotations

import json
import sys
from functools import reduce
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

_SECONDS = 5


def main() -> int:
    """Check once; return 0 if it is healthy, or print the reason and return 1."""
    address, *expected = sys.argv[1:]
    try:
        with build_opener(ProxyHandler({})).open(address, timeout=_SECONDS) as answer:
            response = json.loads(answer.read()) if expected else None
    except (URLError, OSError, ValueError) as error:
        return _unhealthy(f"{address}: {error}")
    for condition in expected:
        field, _, expected_value = condition.partition("=")
        value = reduce(lambda part, name: (part or {}).get(name), field.split("."), response)
        if value != expected_value:
            return _unhealthy(f"{field} of {address} is {value}, not {expected_value}")
    return 0


def _unhealthy(reason: str) -> int:
    sys.stdout.write(f"{reason}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
