"""The typed facts of an export, one file a table."""
