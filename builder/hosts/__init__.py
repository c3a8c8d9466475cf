"""Configurations with which nginx and Caddy serve a site: they answer what is a file, and pass the
rest on to `hubctl serve`. Imports builder.model only.
"""
