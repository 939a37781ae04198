"""A report as files: Markdown, CSV and PNG, each complete or absent."""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from mixfold.experiments.frame import Report
from mixfold.experiments.markdown import markdown
from mixfold.experiments.overview import STEM, Outcome, overview
from mixfold.experiments.picture import picture
from mixfold.experiments.rows import csv_text


def write_report(report: Report, folder: Path) -> tuple[Path, ...]:
    """Write a report to ``folder``, replacing an earlier one; return the paths.

    All three are made before the first is written, so that a failure leaves none behind.
    """
    image = BytesIO()
    picture(report).savefig(image, format="png", dpi=110)
    contents = {
        "md": markdown(report).encode(),
        "csv": csv_text(report).encode(),
        "png": image.getvalue(),
    }
    paths = []
    for suffix, content in contents.items():
        paths.append(_written(folder / f"{report.stem}.{suffix}", content))
    return tuple(paths)


def write_overview(outcomes: Sequence[Outcome], folder: Path, quick: bool) -> Path:
    """Write the page about all tables; that of a quick run does not replace that of a full one."""
    name = f"{STEM}-quick.md" if quick else f"{STEM}.md"
    return _written(folder / name, overview(outcomes).encode())


def _written(path: Path, content: bytes) -> Path:
    partial = path.parent / f".{path.name}.{os.getpid()}.partial"
    try:
        partial.write_bytes(content)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return path
