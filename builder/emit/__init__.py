"""Writes files of the site, one module for each scope: a repo, an owner, a list, the whole site."""
