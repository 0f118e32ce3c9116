"""What verifiers of code share: patches, path policy, sealed tests and a channel for results."""
