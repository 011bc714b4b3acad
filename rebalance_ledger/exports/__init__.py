"""Exports: the contract, the manifest, writing, sealing, uploading and redacting them.

Belongs here: everything between a collector's answers and a sealed day, and reading the payloads of a sealed day. Does not belong
here: calls to a cluster (`rebalance_ledger.collectors`), and Spark.
"""
