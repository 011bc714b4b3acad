"""TODO rebalance_ledger."""
