"""Deployments of a site to the place that readers read it from: a folder or a bucket of S3.

``run`` is a deployment. It lists a destination (``destination``, ``folder``, ``bucket``), takes a
snapshot of the site (``snapshot``), compares both with what the last deployment left (``manifest``,
``plan``), and changes objects in an order that breaks no link (``order``). ``follower`` deploys
after the builds of a service, and ``notices`` sends messages about that.
"""
