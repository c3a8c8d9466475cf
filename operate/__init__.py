"""For operators: deployments, backups, checks, a branch in git.

A wing: it imports the core, and nothing of the core or of `moving` imports it.
"""
