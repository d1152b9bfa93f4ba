"""The file from which a stopped audit is resumed.

Public names: `Store`.
"""
