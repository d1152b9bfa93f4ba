"""A case: one audit or check of a statement, with its expected result."""
