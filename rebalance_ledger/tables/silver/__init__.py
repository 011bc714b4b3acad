"""Silver tables: the export as typed rows, one file per table."""
