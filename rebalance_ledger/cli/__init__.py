"""The commands of `ledger`. Imports every other package; nothing imports this one.

What belongs here: options, output and exit codes. What does not: the steps themselves (`rebalance_ledger.pipeline`).
"""
