"""The way in and out: imports from other formats and vendors, and exports.

A wing: it imports the core, and nothing of the core or of `operate` imports it.
"""
