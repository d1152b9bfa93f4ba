"""Shared parts of the benchmark pages: tasks, targets, records and pages."""
