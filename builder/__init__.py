"""The read side: content in, site out. Imports nothing else of the project.

The modules follow the way of the data: ``content`` reads, ``derive`` computes, ``render``
turns objects into bytes, ``site`` writes them, and ``build`` is the glue. ``routes`` holds
every URL, file name and header rule; ``serve`` answers HTTP from the files.
"""

VERSION = "1.0.0"
