"""Ways out: the prompts of the content as files of other formats."""
