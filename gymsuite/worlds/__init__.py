"""Stateful tool worlds: SQLite state, a journal, a diff, a reward, and users that need no model."""
