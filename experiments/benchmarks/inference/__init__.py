"""Benchmarks of the statistics: false alarms, coverage, power."""
