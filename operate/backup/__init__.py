"""Backups of a hub, and their restoration: content and databases, to a folder or a bucket.

A place holds *objects*, each under the SHA-256 of its bytes, and *snapshots*, each a JSON file that
names the objects of the content and the databases at one time. A snapshot is written last, so it
exists with all of its objects, or not at all.
"""
