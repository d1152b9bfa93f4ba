"""Suites of results, their JSON format and schema, merging, and comparison with a baseline.

Public names: `Entry`, `Suite`, `load`, `save`.
"""
