"""Configurations of servers and hosts that serve a site, generated from the table of routes.

Each host has a module with one function ``files(site)``: all configuration that it needs, as texts
by file name. All of them say the same in different languages: which URL is which file, with which
headers; which requests are refused and how; and which are passed to ``hubctl serve``. The suite in
``tests/conformance`` checks that for all of them, and for the embedded server.
"""
