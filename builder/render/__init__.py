"""Records to bytes: JSON, pages, feeds, the API document. Pure."""
