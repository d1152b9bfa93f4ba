"""The pytest plugin, whose modules are loaded when a test first needs them."""
