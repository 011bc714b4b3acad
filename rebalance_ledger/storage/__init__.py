"""TODO rebalance_ledger/storage."""
