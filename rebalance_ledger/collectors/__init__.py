"""Collectors: a live cluster through RocketMQ's admin client, or saved mqadmin output and files.

Belongs here: which questions to ask, and how each source becomes the lines of an export. Does not belong here: what an export is
(`rebalance_ledger.exports`).
"""
