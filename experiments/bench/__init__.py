"""Benchmarks: one folder for each page, and the page of all."""
