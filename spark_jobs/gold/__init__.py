"""Gold: the tables that readers query, one module each, named as the table."""
