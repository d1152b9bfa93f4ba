"""The audits: one module for each function that users call, and the modules that these share.

Public names: `assert_same_distribution`, `check_same_distribution`, `check`, `check_outputs`, `epsilon_lower`,
`count_cells`, `check_equivalence`.
"""
