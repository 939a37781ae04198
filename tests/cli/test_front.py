"""Mistakes in the words of a command are seen before anything is loaded to carry it out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from mixfold import load
from mixfold.cli.app import app
from mixfold.cli.front import ForeignFile, Mistake, _words_of, check_words
from mixfold.store import ModelFileError
from mixfold.store.container import MAX_HEADER

COMMANDS = {
    one.name or one.callback.__name__.replace("_", "-"): one for one in app.registered_commands
}


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_those_of_the_parser(name: str) -> None:
    command = typer.main.get_command(app).commands[name]
    found = _words_of(COMMANDS[name].callback)
    options = {
        word: not one.is_flag
        for one in command.params
        if one.param_type_name == "option"
        for word in (*one.opts, *one.secondary_opts)
    }
    assert {**options, "--help": False, "-h": False} == found.options
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    assert len(arguments) == len(found.arguments)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ft"], "Did you mean 'fit'?"),
        (["fit", "no.csv", "-o", "m"], "'no.csv' does not exist"),
        (["fit", "-qk3", "no.csv"], "'no.csv' does not exist"),
        (["fit", "--out=m", "--", "no.csv"], "'no.csv' does not exist"),
        (["fit", ".", "--componets", "3"], "No such option: --componets (Possible options: --co"),
        (["fit", ".", "--out"], "'--out' requires an argument"),
        (["fit", ".", "--model", "gausian"], "there is no model 'gausian'"),
        (["fit", ".", "-mgausian"], "there is no model 'gausian'"),
        (["--debug", "inspect", "no.mixfold"], "'no.mixfold' does not exist"),
    ],
)
def test_a_mistake_is_named(words: list[str], expected: str) -> None:
    with pytest.raises(Mistake) as caught:
        check_words(app, words)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        [], ["--help"], ["--version"], ["fit", "--help"], ["fit", "no.csv", "--help"],
        ["fit", ".", "--out", "--model"], ["fit", ".", "-k", "-3"], ["reproduce", "--anything"],
        ["models"], ["fit", ".", "-o", "m", "-q", "--seed=3", "-mkmeans"],
    ],
)  # fmt: skip
def test_what_is_right_or_in_doubt_is_left_to_the_parser(words: list[str]) -> None:
    check_words(app, words)


@pytest.mark.parametrize(
    "content", [b"a,b\n1,2\n3,4\n", bytes(20), MAX_HEADER.to_bytes(8, "little") + b"{}", b"a", b""]
)
def test_a_file_that_is_no_model_is_told_as_by_the_reader(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as read:
        load(path)
    told = "not a mixfold model file" in str(read.value)
    assert told == (content[:1] in b"a\0" and len(content) > 10)
    if not told:
        check_words(app, ["predict", str(path), str(path)])
        return
    with pytest.raises(ForeignFile) as seen:
        check_words(app, ["predict", str(path), str(path)])
    assert str(seen.value) == str(read.value)


@pytest.mark.parametrize(
    "words", [["--help"], ["ft"], ["fit", "no.csv", "-o", "m"], ["inspect", "table.csv"]]
)
def test_nothing_heavy_is_imported_for_it(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "table.csv").write_text("a,b\n1,2\n3,4\n")
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "mixfold", *words],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == {"--help": 0, "inspect": 1}.get(words[0], 2)
    assert "Traceback" not in done.stderr
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "mixfold.cli.app" in imported
    assert not imported & {"numpy", "rich", "sklearn", "pyarrow", "mixfold.contracts", "numba"}
