"""What should a cluster change? Each change of a log's cluster or rules is run online again on the same jobs."""
