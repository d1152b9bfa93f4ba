"""Simulations that check the numbers in statements of documents, and figures of their results."""
