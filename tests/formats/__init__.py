"""What we write, read by the formats' own programs: prompty's and skills' for Python, in an
environment of their own that ``tests/install-tools`` makes, and dotprompt's from ``tests/node``.
"""
