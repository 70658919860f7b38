"""Searches for the worst instance of a heuristic: what a guarantee promises, and what was found."""
