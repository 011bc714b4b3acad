"""Exports and warehouse in an object store: a real S3 server on loopback and the unchanged programs."""
