"""Looks at a hub for its operator: what is wrong with it, or soon will be, and what to do.

Each check is a function that takes the subject and yields findings; `examine` has the list of them.
Nothing is changed: probes of a file system take place in a folder of their own, which goes again.
"""
