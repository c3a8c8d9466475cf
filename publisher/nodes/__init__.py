"""Many nodes that publish over one PostgreSQL. Its transactions are the commit, the order and the
lock.

``rows`` has the SQL and the round trip that commits a group. ``commits`` has the thread that
commits, polls and applies. ``copy`` is the content folder of a node, and ``store`` the write path
over these. ``transfer`` copies a whole hub into a database. ``turn`` is for work that one node does
at a time.
"""
