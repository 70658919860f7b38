"""Reproductions: every figure and table of the papers as a setting, published numbers beside measured and certified."""
