"""Imports: publishes the prompts of other collections.

A module for each kind of source (``tables``, ``lines``, ``files``) turns it into items; ``naming``
gives them owners and names, and ``run`` publishes them.
"""
