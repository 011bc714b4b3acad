"""The name of this machine, which Spark looks up when it starts.

Belongs here: the variables for a machine whose name has no address. Does not belong here: starting Spark.
"""

from __future__ import annotations

import socket


def variables_without_address() -> dict[str, str]:
    """Return the environment variables with which Spark starts if this machine's name has no address; none if it has one.

    Spark looks the name up (`org.apache.spark.util.Utils.findLocalInetAddress`, 4.1) even if its configuration uses loopback only, and does
    not start without an address. Names without one are common on laptops and in containers.
    """
    try:
        socket.getaddrinfo(socket.gethostname(), None)
    except (OSError, UnicodeError):  # The latter for a name that is none in DNS.
        return {"SPARK_LOCAL_IP": "127.0.0.1"}
    return {}
