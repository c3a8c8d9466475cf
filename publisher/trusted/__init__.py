"""Publishing from CI without a stored token: identities of jobs, and their issuers."""
