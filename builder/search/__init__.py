"""The search index, and what is asked of it."""
