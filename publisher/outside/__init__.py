"""Requests to other servers, which may be slow or hostile."""
