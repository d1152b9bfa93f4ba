"""The suites of the published testers of differential privacy, implemented from their definitions."""
