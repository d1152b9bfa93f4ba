"""Audits of the releases that people install: OpenDP, diffprivlib and PyDP. Each library is imported when asked for."""
