"""Benchmarks of regression testing."""
