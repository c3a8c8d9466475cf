"""Finds what is stale, and decides in which order and until when it is built."""
