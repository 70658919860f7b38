"""Simulations: policies round by round, every history checked."""
