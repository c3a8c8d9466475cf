"""Counting pulls: access logs in, counts a repo and day out.

``ingest`` reads logs (``log_files``, ``log_lines``, ``targets``, ``agents``) and counts into the
database by ``counter``; the build reads it by ``pulls``. ``log_files`` to ``agents`` know
nothing of the database.
"""
