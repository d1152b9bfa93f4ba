"""DP-SGD in NumPy: thousands of short trainings at once, and one training with many canaries.

The claims need `dp_accounting`, so the names of this room are not among those of `mechanisms`.
"""
