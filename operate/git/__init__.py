"""Keeps a branch of a git repository and the content the same: commits and pushes what is published
here, and takes in what was merged there.

The content folder is the truth about published versions, and the branch about what others have
changed. Both are compared file by file, so nothing has to be remembered: the repository in the
state folder is a cache, and its loss costs a fetch. ``git fast-import`` makes the commits from the
files as they are, so git has no work tree and no index here.
"""
