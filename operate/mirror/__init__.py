"""A copy of another hub that follows it."""
