"""Many nodes that publish over one object store, whose put-if-absent is their only coordination.

``objects`` is the store, ``entries`` what its log says, ``log`` the thread that writes and follows
it, ``replica`` a content folder as a cache of it, ``bucket`` the write path over both. ``lease``
is for what one of them does at a time.
"""
