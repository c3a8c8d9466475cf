"""The commands: ``hubctl`` for operators, one module a command.

The composition root: the only place that imports builder, publisher and the rest together.
"""
