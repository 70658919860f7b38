"""The engine: tasks, limits, workers here or on a cluster, the journal, and one way to run every study on them."""
