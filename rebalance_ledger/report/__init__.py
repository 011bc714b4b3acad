"""What people look at: the report of a day as a page, and the explanation of a group, both from queries in `sql/report`.

What belongs here: the queries with their values, charts and pages. What does not: how tables are opened
(`rebalance_ledger.warehouse.query`), options and terminals (`rebalance_ledger.cli`).
"""
