"""Backups of a hub, and their restoration: one stream with content, accounts and counts of pulls.

``archive`` is the format, ``tree`` and ``databases`` read a hub as of one moment, ``take`` writes a
backup, ``restore`` reads one, and ``floor`` says which numbers follow it.
"""
