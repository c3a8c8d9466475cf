"""Owners, their tokens and how people sign in, in one database."""
