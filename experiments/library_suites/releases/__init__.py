"""Suites of several releases of a library, as a table of callables by release."""
