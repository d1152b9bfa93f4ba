"""Benchmarks of detection: published suites, the catalogue of bugs, rare leaks and low bits."""
