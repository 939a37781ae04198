"""The sections of a page, one idea each; ``registry.py`` says in which order."""
