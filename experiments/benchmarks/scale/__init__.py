"""Benchmarks of long audits: memory, speed, clusters."""
