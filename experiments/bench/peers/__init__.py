"""Comparison with other tools."""
