"""Audits of released versions of OpenDP, diffprivlib, PyDP and JAX Privacy; each is imported when it is used."""
