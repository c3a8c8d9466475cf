"""Keeps a branch of a git repository and the content the same: pushes publications as commits, and
takes in what was merged.

The content folder decides about published versions, and the branch about changes of others. Both
are compared file by file, so no state is needed: the repository in the state folder is a cache, and
its loss costs a fetch. ``git fast-import`` makes the commits directly from the files, so git has no
work tree and no index here.
"""
