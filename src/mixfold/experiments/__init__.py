"""Published tables run again: one small file per table, and the frame that runs and shows them.

A new table is a file with an ``EXPERIMENT`` (see ``mfm_ppca_faces.py``) and a line in
``registry.py``. The command is ``mixfold reproduce``.
"""
