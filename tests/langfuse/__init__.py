"""Langfuse's own SDKs, unchanged, against a hub: Python's in environments of their own, which
``tests/install-tools`` makes below ``build``, and those for JavaScript from ``tests/node``.
"""
