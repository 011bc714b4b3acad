"""What must hold of a staged day before publication, and its measurement.

Belongs here: the expectations (`suites`), and running their SQL over the staged tables. Does not belong here: what follows from the
numbers (`rebalance_ledger.gate`), computing the tables (`strategies`, `spark_jobs`).

A new expectation goes into the module of its table in `suites`: one `Expectation` and one `Violation` that selects the violating rows
in SQL. A new table gets a module of its own and a line in `all_suites`.
"""
