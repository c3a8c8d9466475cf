"""The write path, from a draft to a version that outlasts a power cut. Knows no HTTP."""
