"""Audits of released versions of OpenDP, diffprivlib and PyDP; each library is imported when it is used."""
