"""The editor, with which owners write prompts in a browser: the pages below /account/prompts."""
