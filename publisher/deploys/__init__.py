"""Deploys the site after the builds of a service, and tells somebody what has changed."""
