"""The file from which an interrupted audit resumes.

Public names: `Store`.
"""
