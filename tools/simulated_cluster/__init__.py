"""A healthy RocketMQ cluster of any size that answers the collector, for what no real cluster here is large enough for.

    python -m tools.simulated_cluster --brokers 100 --topics 5000 --groups 3000 --clients-per-group 8 \
        --ds 2026-11-16 --cluster big --exports DIR --settings FILE

The export is collected by the collector itself (`rebalance_ledger.collectors.live`), which asks `answers.HealthyCluster` instead of
RocketMQ's admin client: so it has the lines, and the refusals, that a capture of such a cluster would have. Clients hold
what their strategies give them (`strategies`). The same arguments give the same bytes.

Belongs here: `layout`, which topics, groups and clients there are and who owns what; `answers`, the texts that name
servers, brokers and clients give; `generate`, the capture. Does not belong here: clusters with faults (tests build
those line by line).
"""

from tools.simulated_cluster.generate import generate
from tools.simulated_cluster.layout import Layout, Size

__all__ = ["Layout", "Size", "generate"]
