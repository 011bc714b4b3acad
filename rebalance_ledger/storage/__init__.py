"""Access to local folders and object stores: locations, engine options, the write lease.

What belongs here: how a path or URI is reached and locked. What does not: what is stored there.
"""
