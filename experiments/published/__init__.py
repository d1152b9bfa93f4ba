"""The suites on which the published testers of differential privacy were measured, written from their mathematics."""
