"""The Spark job: read the sealed export of a cluster and day, compute silver and gold, and stage both.

`silver` reads the export, `assignment` computes owners by every strategy, `gold` and `findings` compute the published
tables. Does not belong here: RocketMQ's rules (`strategies`), the meaning of a payload
(`rebalance_ledger.exports`), what may be published (`expectations`).
"""
