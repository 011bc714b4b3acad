"""Set-up: what a fresh clone needs before anything can run. Standard library only; see `bootstrap`."""
