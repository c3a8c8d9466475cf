"""Backups of a hub, and their restoration: one stream with content, accounts and counts of pulls.

``archive`` is the format, ``take`` writes a backup of a hub as of one moment, ``restore`` reads
one, and ``floor`` says which numbers follow it.
"""
