"""Benchmarks of detection: published suites, the catalogue, rare leaks."""
