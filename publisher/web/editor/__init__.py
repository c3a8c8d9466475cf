"""Writing prompts in a browser: the pages below /account/prompts."""
