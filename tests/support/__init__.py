"""Helpers for several test modules: builders of exports and staged days, shapes of real clusters, fault injection."""
