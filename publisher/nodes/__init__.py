"""Many nodes that publish over one PostgreSQL: its transactions are the commit, the order and the
lock.

``rows`` has the SQL and the round trip that commits a group, ``commits`` the thread that commits,
polls and applies, ``copy`` the content folder of a node, ``store`` the write path over these.
``transfer`` copies a whole hub into a database, and ``turn`` is for what one node does at a time.
"""
