"""Search for the pair of datasets on which a mechanism leaks most.

Public names: `WorstPair`, `find_worst_pair`.
"""
