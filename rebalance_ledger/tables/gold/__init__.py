"""Gold tables: the tables that readers query, one file per table."""
