"""Makes `older_release.tar.gz` with the code of an older release; README.md beside it says how to run it there.

It is run in a checkout of that release, so it uses what that release had, and is changed with care: what it made once
is what readers of the old tables still have.
"""

from __future__ import annotations

import sys
import tarfile
from datetime import date
from pathlib import Path

from rebalance_ledger.pipeline import steps
from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.warehouse.layout import Warehouse
from tests.support.export_builder import ExportBuilder

CLUSTER = "shop-test"
DAYS = (date(2026, 11, 16), date(2026, 11, 17))


def main(folder: Path) -> None:
    """Export, compute, judge and publish two days, and pack exports and warehouse."""
    warehouse = Warehouse.at(str(folder / "warehouse"))
    for number, ds in enumerate(DAYS):
        _export(ds, client_count=2 + number).seal(folder / "exports")
        day = Day(CLUSTER, ds, folder / "exports", warehouse, None)
        steps.verify(day)
        steps.build(day)
        steps.gate(day)
        steps.publish(day)
    with tarfile.open(folder / "older_release.tar.gz", "w:gz") as archive:
        archive.add(folder / "exports", "exports")
        for layer in ("silver", "gold"):
            archive.add(folder / "warehouse" / layer, f"warehouse/{layer}")


def _export(ds: date, client_count: int) -> ExportBuilder:
    """Return an export with a healthy group, one whose clients share an id, one that is offline, a line that cannot be read."""
    export = ExportBuilder(CLUSTER, ds)
    brokers = {"a": 2, "b": 2}
    for nameserver in ("ns-1:9876", "ns-2:9876"):
        table = {
            broker: {"brokerName": broker, "cluster": CLUSTER, "brokerAddrs": {"0": f"{broker}:10911"}}
            for broker in brokers
        }
        export.answer("nameserver_cluster_info", {"brokerAddrTable": table}, nameserver=nameserver)
    for topic in ("orders", "payments"):
        export.route(topic, brokers)
    clients = [f"c{number}" for number in range(1, client_count + 1)]
    export.group("order-service", ["orders"], clients, *brokers)
    for broker in brokers:
        export.progress(broker, "order-service", ("orders", broker, 0), ("orders", broker, 1))
        export.no_members(broker, "sleeping")
    export.group("payment-twins", ["payments"], ["twin", "twin"], *brokers)
    export.progress("a", "sleeping", ("orders", "a", 0))
    export.answer("broker_topic_config", '{"topicConfigTable":', broker="a")
    return export


if __name__ == "__main__":
    main(Path(sys.argv[1]))
