"""Exports: the prompts of the content as files of other formats."""
