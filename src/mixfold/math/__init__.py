"""Pure functions on arrays, one topic per file."""
