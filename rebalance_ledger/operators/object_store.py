"""The Airflow connection with which tasks and the server of pages access an object store.

Belongs here: that connection. Does not belong here: reading and writing in the store (`rebalance_ledger.storage`).
"""

from __future__ import annotations

import os

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException


def object_store_variables() -> dict[str, str]:
    """Return the `AWS_*` variables of the connection in `LEDGER_OBJECT_STORE_CONNECTION`; an empty dict if it is not set.

    In that case the variables of the worker's environment apply, and without those the role of the machine.

    Raises:
        AirflowFailException: If there is no such connection.
    """
    name = os.environ.get("LEDGER_OBJECT_STORE_CONNECTION")
    if not name:
        return {}
    try:
        connection = Connection.get(name)
    except AirflowNotFoundException as error:
        raise AirflowFailException(
            f"There is no Airflow connection {name}, which LEDGER_OBJECT_STORE_CONNECTION names; add one of type aws, with access "
            "key as login and secret key as password (see docs/object-store.md)."
        ) from error
    extra = connection.extra_dejson
    variables = {
        "AWS_ACCESS_KEY_ID": connection.login,
        "AWS_SECRET_ACCESS_KEY": connection.password,
        "AWS_SESSION_TOKEN": extra.get("aws_session_token"),
        "AWS_REGION": extra.get("region_name"),
        "AWS_ENDPOINT_URL": extra.get("endpoint_url"),
    }
    return {variable: value for variable, value in variables.items() if value}
