"""Isolated places where commands run: their images, their providers, and the way into them."""
