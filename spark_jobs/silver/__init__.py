"""Compute the silver tables: the lines of an export as typed rows, one table for each kind of fact."""
