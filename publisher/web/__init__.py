"""Publishing and the account settings over HTTP, with Flask."""
