"""RocketMQ's own Java classes of five releases, called from Python.

Belongs here: the list of jars (`jars.txt`, downloaded by `setup.maven_jars`), a small Java program that calls their classes, and writing `tests/golden` with it.
Does not belong here: any rule of RocketMQ, and any comparison (see `tests/differential`).
"""
