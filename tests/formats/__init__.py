"""Exported files, read by the formats' own programs.

These are prompty's and skills' for Python, in an environment of their own that
``tests/install-tools`` creates, and dotprompt's from ``tests/node``.
"""
