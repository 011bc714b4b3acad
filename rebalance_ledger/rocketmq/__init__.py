"""TODO rebalance_ledger/rocketmq."""
