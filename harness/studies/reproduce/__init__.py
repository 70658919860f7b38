"""Reproductions: compare the figures and tables of the papers with measured values and certified bounds."""
