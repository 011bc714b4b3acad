"""The report of a day as a page, and the explanation of a group, both from queries in `sql/report`.

Belongs here: the queries with their values, charts and pages. Does not belong here: opening tables
(`rebalance_ledger.warehouse.query`), options and terminals (`rebalance_ledger.cli`).
"""
