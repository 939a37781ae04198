"""The gallery shows the pictures that an example writes to its working directory.

Indented blocks in the words of an example are commands.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from docutils import nodes


def moved_pictures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Move the PNG files of the example into the gallery, in alphabetical order."""
    from sphinx_gallery.scrapers import figure_rst

    folder = Path(block_vars["src_file"]).parent
    shown = ""
    for picture in sorted(folder.glob("*.png")):
        place = next(block_vars["image_path_iterator"])
        shutil.move(picture, place)
        shown += figure_rst([place], gallery_conf["src_dir"])  # each as wide as the page
    return shown


def _commands(app: Any, doctree: nodes.document) -> None:
    if app.env.docname.startswith("gallery/"):
        for block in doctree.findall(nodes.literal_block):
            block.setdefault("language", "sh")


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-read", _commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
