"""Every table of the list can be loaded and says what it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mixfold.experiments
from mixfold.experiments.frame import reproduce
from mixfold.experiments.registry import EXPERIMENTS, find_entry

ROOM = Path(mixfold.experiments.__file__).parent


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_entry_declares_a_table(name: str) -> None:
    entry = find_entry(name)
    experiment = entry.load()
    assert experiment.name == name
    assert re.fullmatch(r"00[0-4]", experiment.source)
    assert f"source {experiment.source}, {experiment.place}" in entry.summary
    assert "\n" not in entry.summary and len(entry.summary) < 100
    assert experiment.title and len(experiment.protocol) > 100
    for file in experiment.data:
        assert Path(file.name).name == file.name, "a file of the data folder, not a path"
        assert file.content and file.origin


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_data_is_only_read_from_the_given_folder(name: str, tmp_path: Path) -> None:
    experiment = find_entry(name).load()
    if not experiment.data:
        pytest.skip("needs no data file")
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
