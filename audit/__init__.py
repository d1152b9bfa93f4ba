"""The library: from a claim and a pair of datasets to a verdict."""
