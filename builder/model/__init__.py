"""The vocabulary of the whole project: names, records, errors, and the table of routes.

Imports no other package of the project.
"""
