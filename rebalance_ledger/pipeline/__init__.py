"""The steps of one cluster and day, and the programs that run many of them.

Belongs here: `verify`, `build`, `gate` and `publish` as functions, backfills, the sample run. Does not belong here: command line
options and output (`rebalance_ledger.cli`).
"""
