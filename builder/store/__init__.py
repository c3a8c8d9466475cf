"""The folders that a build reads and writes: content, site, and the state between builds."""
