"""Comparisons: methods on instances, certified against the tightest bounds."""
