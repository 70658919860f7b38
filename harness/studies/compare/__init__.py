"""Comparisons: run methods on instances and certify their gaps against the tightest bounds."""
