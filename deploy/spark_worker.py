"""Start a Spark worker that advertises its address on the master's network: `spark_worker.py MASTER_URL [OPTION…]`.

A container on several networks has several addresses, and Spark would advertise the first of them, which the master and the drivers
may not reach.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import NoReturn
from urllib.parse import urlsplit

_WORKER = "org.apache.spark.deploy.worker.Worker"


def main() -> NoReturn:
    """Become the worker."""
    master, *options = sys.argv[1:]
    arguments = ["spark-class", _WORKER, "--host", local_address(master), *options, master]
    os.execvp("spark-class", arguments)  # noqa: S606, S607  # in the image there is one


def local_address(master: str) -> str:
    """Return the address of this machine from which the master is reached.

    Args:
        master: Such as `spark://spark-master:7077`.
    """
    url = urlsplit(master)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((url.hostname, url.port))  # chooses a route and sends nothing
        address: str = probe.getsockname()[0]
    return address


if __name__ == "__main__":
    main()
