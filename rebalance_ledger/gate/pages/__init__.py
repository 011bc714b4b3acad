"""The pages of the gate: Data Docs and their first page.

What belongs here: what is on a page, and the templates. What does not: the verdict (`rebalance_ledger.gate.verdict`), where pages
are kept and who may read them (`rebalance_ledger.warehouse.pages`, `rebalance_ledger.operators.pages`).
"""
