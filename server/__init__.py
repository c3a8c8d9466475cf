"""The embedded server: one process, one port. Imports the builder; never the publisher."""
