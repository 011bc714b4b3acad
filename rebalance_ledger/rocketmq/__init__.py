"""RocketMQ's names, versions and file formats, as its clients and brokers define them.

What belongs here: client releases, Java strings, message queues, routes, system topics, the JSON dialect, offset files.
What does not: the allocation rules (`strategies`), and anything that imports an engine.
"""
