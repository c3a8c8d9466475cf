"""Parsing of prompts' texts, and differences between texts. Pure functions of text."""
