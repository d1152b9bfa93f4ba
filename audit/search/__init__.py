"""Search for the pair of datasets on which a mechanism leaks most.

Public names: `find_worst_pair`.
"""
