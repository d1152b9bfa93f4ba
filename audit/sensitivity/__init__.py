"""The sensitivity of a query: the largest change between neighbours, searched and compared with the stated one.

Public names: `SensitivityResult`, `check_sensitivity`.
"""
