"""The gallery shows the pictures that an example writes to its working directory.

Its thumbnails are cut from them: a picture of many panels, made so small as a whole, shows nothing.
Indented blocks in the words of an example are commands.
"""

from __future__ import annotations

import re
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


_THUMBNAIL = (400, 280)  # pixels, as sphinx-gallery makes them
_LINES, _WORDS = 13, 50  # of a thumbnail of text, and characters of a line
_WIDEST, _HIGHEST = 1.9, 1.1  # ratios of width to height beyond which a picture is cut


def cut_thumbnail(picture: Any) -> Any:
    """A thumbnail of an image: its upper left part, as large as may be, on white."""
    from PIL import Image

    width, height = picture.size
    part = picture.convert("RGB").crop(
        (0, 0, min(width, round(_WIDEST * height)), min(height, round(width / _HIGHEST)))
    )
    part.thumbnail(_THUMBNAIL, Image.Resampling.LANCZOS)
    made = Image.new("RGB", _THUMBNAIL, "white")
    made.paste(part, tuple((a - b) // 2 for a, b in zip(_THUMBNAIL, part.size, strict=True)))
    return made


def write_thumbnail(page: str, thumbnail: Path) -> None:
    """The first lines that an example prints, as its page has them, for one without pictures."""
    from matplotlib.figure import Figure

    found = re.search(r"sphx-glr-script-out\n.*?\.\. code-block:: none\n(.*?)\n\n\n", page, re.S)
    if not found:
        return
    lines = [line[4:] for line in found[1].strip("\n").splitlines()][:_LINES]
    figure = Figure(figsize=[size / 100 for size in _THUMBNAIL], dpi=100)
    text = "\n".join(line if len(line) <= _WORDS else line[: _WORDS - 1] + "…" for line in lines)
    figure.text(0.03, 0.95, text, family="monospace", fontsize=8.5, va="top", linespacing=1.35)
    figure.savefig(thumbnail)


def _thumbnails(app: Any) -> None:
    """Cut the thumbnails of the gallery anew; a comment in an example may name the picture."""
    from PIL import Image

    images = Path(app.srcdir) / "gallery" / "images"
    for script in sorted((Path(app.srcdir).parent / "examples").glob("*.py")):
        asked = re.search(r"sphinx_gallery_thumbnail_number = (\d+)", script.read_text("utf-8"))
        picture = images / f"sphx_glr_{script.stem}_{int(asked[1]) if asked else 1:03d}.png"
        thumbnail = images / "thumb" / f"sphx_glr_{script.stem}_thumb.png"
        page = images.parent / f"{script.stem}.rst"
        if picture.exists():
            cut_thumbnail(Image.open(picture)).save(thumbnail)
        elif page.exists():
            write_thumbnail(page.read_text("utf-8"), thumbnail)


def _commands(app: Any, doctree: nodes.document) -> None:
    if app.env.docname.startswith("gallery/"):
        for block in doctree.findall(nodes.literal_block):
            block.setdefault("language", "sh")


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", _thumbnails, priority=900)  # after sphinx-gallery's own
    app.connect("doctree-read", _commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
