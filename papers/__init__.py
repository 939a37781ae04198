"""Published tables run again: one file for each table or figure, and a frame that shows them.

``python -m papers NAME`` runs one; ``README.md`` beside this file says how to add another.
"""
