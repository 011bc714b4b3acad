"""Collectors: a live cluster through RocketMQ's admin client, or texts and files that people have kept.

What belongs here: which questions to ask, and how each source becomes the lines of an export. What does not: what an
export is (`rebalance_ledger.exports`).
"""
