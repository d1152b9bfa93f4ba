"""Known bugs of generators of synthetic tables."""
