"""RocketMQ's names, versions and file formats, as its clients and brokers define them.

Belongs here: client releases, Java strings, message queues, routes, system topics, the JSON dialect, offset files. Does not belong
here: the allocation rules (`strategies`), and anything that imports an engine.
"""
