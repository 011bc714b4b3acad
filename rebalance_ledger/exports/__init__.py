"""Exports: the contract, the manifest, writing, sealing, uploading and redacting them.

What belongs here: everything between a collector's answers and a sealed day, and reading the payloads of a sealed day.
What does not: calls to a cluster (`rebalance_ledger.collectors`), and Spark.
"""
