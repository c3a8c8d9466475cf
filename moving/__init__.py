"""Imports from other formats and vendors, and exports.

An optional part: it imports the core. Neither the core nor `operate` imports it.
"""
