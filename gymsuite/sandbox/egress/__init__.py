"""The way out of a sandbox, where its spec names hosts that it may reach; by default there is none.

A sandbox has no network. A proxy of its own on this machine listens on a socket that is mounted
into it, and connects to what is listed and to nothing else.
"""
