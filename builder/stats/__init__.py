"""Counting pulls: access logs in, counts for each repo and day out.

``ingest`` reads logs (``log_files``, ``log_lines``, ``targets``, ``agents``) and counts into the
database with ``counter``; the build reads it with ``pulls``. ``log_files`` to ``agents`` do not
use the database.
"""
