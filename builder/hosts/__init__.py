"""Configurations of servers and hosts that serve a site, made from the table of routes.

Each module has one function ``files(site)``: what one host needs, as texts by file name. They say
the same in different languages: which URL is which file, with which headers; what is refused and
how; and what goes on to ``hubctl serve``. The suite in ``tests/conformance`` holds all of them to
that, and the embedded server too.
"""
