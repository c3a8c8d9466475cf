"""The write side, over HTTP: reports the faults of a prompt, or stores it durably.

``write`` has the write path: ``drafts`` checks that a publication is well-formed, ``resolve``
decides its metadata, ``next_version`` its number, ``publish`` puts them together, and ``durable``
puts it on the disk. May import builder and server.
"""
