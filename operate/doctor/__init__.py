"""Checks a hub for its operator: existing and approaching problems, and their solutions.

Each check is a function that takes the subject and yields findings, none if all is well. `examine`
lists the checks. Nothing is changed.
"""
