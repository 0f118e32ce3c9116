"""What environment authors use: the promises as a gate."""
