"""The tool server: MCP over the files that the build made.

Reads what ``builder`` wrote, through the table of routes; imports nothing of the publisher.
"""
