"""The pages of the gate: Data Docs and their first page.

Belongs here: the content of the pages, and templates. Does not belong here: the verdict (`rebalance_ledger.gate.verdict`), and storage and
access of pages (`rebalance_ledger.warehouse.pages`, `rebalance_ledger.operators.pages`).
"""
