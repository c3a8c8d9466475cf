"""Pages on which people manage their accounts: Flask views over ``people`` and ``accounts``."""
