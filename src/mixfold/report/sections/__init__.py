"""The sections of a page, one per file; ``registry.py`` orders them."""
