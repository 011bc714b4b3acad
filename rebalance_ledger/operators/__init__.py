"""TODO rebalance_ledger/operators."""
