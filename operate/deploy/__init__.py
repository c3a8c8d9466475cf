"""Brings a site to where it is read from: a folder, or a bucket that speaks S3.

``run`` is the glue of: what is where (``destination``, ``folder``, ``bucket``), what the site has
and how that stays the same for as long as it takes (``snapshot``), what is remembered of the last
time (``manifest``), what has to go (``compare``), and in which order, so that no reader follows a
link to what is not there (``order``).
"""
