"""The commands of `ledger`. Imports every other package; nothing imports this one.

Belongs here: options, output and exit codes. Does not belong here: the steps themselves (`rebalance_ledger.pipeline`).
"""
