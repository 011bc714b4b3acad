"""RocketMQ's own Java classes, five releases of them, asked from Python.

Belongs here: which jars (`jars.txt`, fetched by `setup.maven_jars`), a small Java program that calls them, and writing `tests/golden` with it.
Does not belong here: any rule of RocketMQ, and any comparison (see `tests/differential`).
"""
