"""Simulations: run policies round by round, and check every history."""
