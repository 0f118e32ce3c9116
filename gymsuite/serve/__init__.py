"""Servers that speak the protocols of others, one to a module; the only door to starlette."""
