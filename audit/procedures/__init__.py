"""The audits: one module for each function that users call, and the modules that these share.

Public names: `check`, `check_equivalence`, `check_outputs`, `epsilon_lower`.
"""
