"""Benchmarks: one folder for each page, and an overview of all pages."""
