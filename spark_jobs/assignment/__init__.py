"""Assignment: one row per group and topic with its queues and members, divided by every strategy."""
