"""What every part of the project speaks of: names, records, errors, and the table of routes.

Imports nothing else of the project.
"""
