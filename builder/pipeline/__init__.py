"""What is stale, in which order it is built, and until when."""
