"""Expectations as data: what must hold for each table, and the SQL that finds what violates it.

Belongs here: a module for each suite, what several of them share, and the statements that measure them all. Does not belong here:
whether a number is accepted, and where it is shown (`expectations`).

The lower modules are `thresholds` and `model`; `all_suites`, `metrics` and `judged_columns` know every suite.
"""
