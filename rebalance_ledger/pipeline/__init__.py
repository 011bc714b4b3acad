"""The steps of one cluster and day, and the programs that run many of them.

What belongs here: `verify`, `build`, `gate` and `publish` as functions, backfills, the sample run. What does not: command
line options and output (`rebalance_ledger.cli`).
"""
