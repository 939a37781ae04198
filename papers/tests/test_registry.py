"""Every table of the list can be loaded and says what it is."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import papers
from papers.frame.bibliography import SOURCES, find_source
from papers.frame.registry import EXPERIMENTS, find_entry
from papers.frame.run import reproduce

ROOM = Path(papers.__file__).parent


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_entry_declares_a_table(name: str) -> None:
    entry = find_entry(name)
    experiment = entry.load()
    assert experiment.name == name
    assert experiment.source in SOURCES
    assert f"{experiment.source}, {experiment.place}" in entry.summary
    assert "\n" not in entry.summary and len(entry.summary) < 100
    assert experiment.title and len(experiment.protocol) > 100
    for file in experiment.data:
        assert Path(file.name).name == file.name, "a file of the data folder, not a path"
        assert file.content and file.origin


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if find_entry(name).load().data])
def test_data_is_only_read_from_the_given_folder(name: str, tmp_path: Path) -> None:
    experiment = find_entry(name).load()
    with pytest.raises(FileNotFoundError, match=re.escape(experiment.data[0].name)):
        reproduce(experiment, tmp_path)


def test_every_declaration_is_listed() -> None:
    declaring = {p.stem for p in ROOM.glob("*.py") if "\nEXPERIMENT = " in p.read_text("utf-8")}
    assert declaring == {entry.module for entry in EXPERIMENTS.values()}


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'mfm-ppca-face'.*Did you mean 'mfm-ppca-faces'"):
        find_entry("mfm-ppca-face")
    with pytest.raises(ValueError, match=r"'xyz'\. Choose one of: mfm-ppca-faces"):
        find_entry("xyz")


def test_every_source_is_in_the_bibliography() -> None:
    page = (ROOM.parent / "docs" / "bibliography.md").read_text(encoding="utf-8")
    for key, source in SOURCES.items():
        assert key.endswith(str(source.year)) and str(source.year) in source.cited
        entry = next(line for line in page.splitlines() if line.startswith(f"| {key} |"))
        for part in (source.authors, str(source.year), source.title):
            assert part in entry


def test_a_source_that_is_not_in_the_bibliography_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'Nobody 1900' is no source .* Yu 2006"):
        find_source("Nobody 1900")
    with pytest.raises(ValueError, match="'Nobody 1900'"):
        replace(find_entry("vb-toy").load(), source="Nobody 1900")
