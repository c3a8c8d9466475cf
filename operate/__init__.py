"""For operators: deployments, backups, checks, and a branch in git.

An optional part: it imports the core. Neither the core nor `moving` imports it.
"""
