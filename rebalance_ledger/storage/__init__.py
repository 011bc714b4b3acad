"""Access to local folders and object stores: locations, engine options, the write lease.

Belongs here: how a path or URI is reached and locked. Does not belong here: what is stored there.
"""
