"""From an export to a staged day, with Spark.

What belongs here: reading an export into silver, computing gold, staging both. What does not: RocketMQ's rules
(`strategies`), what a payload means (`topology`), what may be published (`expectations`, `warehouse`).
"""
