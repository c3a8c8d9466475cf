"""Deployments of a site to the folder or the S3 bucket from which readers read it.

``run`` is a deployment. It lists a destination (``destination``, ``folder``, ``bucket``) and takes
a snapshot of the site (``snapshot``). It compares both with the state after the last deployment
(``manifest``, ``plan``), and changes objects in an order that breaks no link (``order``).
``follower`` deploys after the builds of a service, and ``notices`` sends messages about that.
"""
