"""Search for the instances on which a heuristic is worst, and compare the ratios found with its guarantee."""
