"""Skills, as the programs of others install them from a site of plain files."""
