"""Compute the gold tables, one module per table, named after the table."""
