"""Collectors: a live cluster through RocketMQ's admin client, or saved mqadmin output and files.

What belongs here: which questions to ask, and how each source becomes the lines of an export. What does not: what an
export is (`rebalance_ledger.exports`).
"""
