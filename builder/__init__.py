"""The read side: content in, site out. Imports nothing else of the project.

The packages follow the way of the data: ``store`` reads the content, ``render`` turns records into
bytes, ``write`` puts them on the site, ``pipeline`` decides what and when. ``model.routes`` holds
every URL, file name and header rule.
"""

VERSION = "1.0.0"
