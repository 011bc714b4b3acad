"""Run a program of Spark that advertises its address on the master's network: `local_address.py MASTER_URL PROGRAM [ARGUMENT…]`.

A container on several networks has several addresses, and Spark would advertise the first of them, which the master, the drivers and
the executors may not reach.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import NoReturn
from urllib.parse import urlsplit


def main() -> NoReturn:
    """Become the program, with the address in its environment."""
    master, *command = sys.argv[1:]
    address = local_address(master)
    environment = {**os.environ, "SPARK_LOCAL_IP": address, "SPARK_LOCAL_HOSTNAME": address}
    os.execvpe(command[0], command, environment)  # noqa: S606  # the command is written in docker-compose.yml


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
