"""Looks at a hub for its operator: what is wrong with it, or soon will be, and what to do.

Each check is a function that takes the subject and yields findings, none if all is well. `examine`
lists the checks. Nothing is changed.
"""
