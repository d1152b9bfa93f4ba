"""Results as files: suites, their JSON format and its schema, and comparison with a baseline.

Public names: `Entry`, `Suite`, `load`, `save`.
"""
