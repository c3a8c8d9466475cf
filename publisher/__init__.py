"""The write side, over HTTP: says what is wrong with a prompt, or stores it for good.

``write`` has the write path: ``drafts`` says whether a publication is well-formed, ``resolve``
decides its metadata, ``next_version`` its number, ``publish`` puts them together, and ``durable``
puts it on the disk behind the protocol of ``store_protocol``. May import builder and server.
"""
