"""The ways in which people sign in: passwords, invitations, sessions. Knows nothing of HTTP."""
