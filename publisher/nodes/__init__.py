"""Many nodes that publish over one PostgreSQL: its transactions are the commit, the order and the
lock.

``statements`` has the SQL, ``rows`` what a change is and the round trip that commits a group,
``commits`` the thread that commits and polls, ``copy`` the content folder of a node, ``store`` the
write path over these. ``turn`` is for what one node does at a time.
"""
