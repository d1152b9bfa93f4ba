"""Audits of released versions of OpenDP, diffprivlib and PyDP; each is imported when it is used."""
