"""The tables that readers query, one file each."""
