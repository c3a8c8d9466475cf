"""The parts of the publish service, which the API and the pages work on."""
