"""Deployments of a site to the folder or the S3 bucket from which readers read it.

``run`` compares the files of the site (``wanted``) with the objects of a destination (``folder``,
``bucket``), and changes those that differ in an order that breaks no link (``order``).
``follower`` does so after each build of a service.
"""
