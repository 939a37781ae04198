"""A report as files: Markdown, CSV and PNG, each complete or absent."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path

from mixfold.experiments.frame import Report
from mixfold.experiments.markdown import markdown
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
        path = folder / f"{report.stem}.{suffix}"
        partial = folder / f".{path.name}.{os.getpid()}.partial"
        try:
            partial.write_bytes(content)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
        paths.append(path)
    return tuple(paths)
