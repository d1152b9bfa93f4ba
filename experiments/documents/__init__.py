"""Experiments on the statements of the source documents."""
