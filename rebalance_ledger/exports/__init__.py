"""What an export is: its contract, its manifest, and how the text that RocketMQ gave is read.

What belongs here: kinds of sources, envelopes, seals, the JSON dialect, payload text to facts, collectors. What does
not: Spark, and RocketMQ's own rules (`strategies`).
"""
