"""Compute owners: collect the queues and members of each group and topic, and apply every strategy."""
