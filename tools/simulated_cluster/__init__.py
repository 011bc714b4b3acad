"""A simulated healthy RocketMQ cluster that answers the collector, in sizes that no available real cluster has.

    python -m tools.simulated_cluster --brokers 100 --topics 5000 --groups 3000 --clients-per-group 8 \
        --ds 2026-11-16 --cluster big --exports DIR --settings FILE

The collector itself (`rebalance_ledger.collectors.live`) writes the export. It queries `answers.HealthyCluster` instead of
RocketMQ's admin client, so the export has the same lines and error lines as a capture of such a cluster. Clients hold
the queues that their strategies assign (`strategies`). Equal arguments give equal bytes.

Belongs here: `layout`, the topics, groups, clients and owners; `answers`, the payloads of name
servers, brokers and clients; `generate`, the capture. Does not belong here: clusters with faults (tests build
those line by line).
"""

from tools.simulated_cluster.generate import generate
from tools.simulated_cluster.layout import Layout, Size

__all__ = ["Layout", "Size", "generate"]
