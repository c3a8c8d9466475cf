"""Other collections' prompts, brought in by way of ``publish``.

One module a kind of source (``tables``, ``lines``, ``files``) turns it into items; ``naming``
gives them owners and names, and ``run`` publishes them.
"""
