"""Relaxations in which jobs do fractions of their work: over intervals of time, and on a single machine."""
