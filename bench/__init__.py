"""`make bench`: what the ledger's hot paths cost, each against something that its reader knows.

Belongs here: one module for each part of the benchmark, with a function `measure` that returns `bench.report.Measurement`s. Its data
is generated, seeded, and of the shape that the part's docstring names. Does not belong here: tests (a slow run must not fail a build),
and any code that the ledger itself needs.
"""
