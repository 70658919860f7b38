"""Audits of the papers' theorems, lines and numbers: each claim is data and a function that tries it."""
