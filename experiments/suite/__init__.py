"""The suites that `dpaudit run` runs."""
