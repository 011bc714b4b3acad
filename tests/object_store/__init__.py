"""Exports and warehouse in an object store: a real server that speaks S3, on loopback, and the programs as they are."""
