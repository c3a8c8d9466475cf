"""What a prompt's text says, and how two texts differ. Pure functions of text."""
