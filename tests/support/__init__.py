"""Helpers that several test modules use: builders of exports and staged days, real clusters' shapes, fault injection."""
