"""Cheats that try to be scored without a solution, and what plays them. Hostile on purpose."""
