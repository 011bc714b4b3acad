"""The Spark job of one cluster and day: read an export, compute silver and gold, stage both.

`silver` reads the export, `assignment` computes owners by every strategy, `gold` and `findings` compute the published
tables. What does not belong here: RocketMQ's rules (`strategies`), the meaning of a payload
(`rebalance_ledger.exports`), what may be published (`expectations`).
"""
