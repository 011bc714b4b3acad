"""TODO rebalance_ledger/pipeline."""
