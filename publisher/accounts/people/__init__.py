"""How people sign in: passwords, invitations, sessions. Knows nothing of HTTP."""
