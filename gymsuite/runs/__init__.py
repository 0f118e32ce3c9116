"""Runs: many rollouts made by one command, in one run directory."""
