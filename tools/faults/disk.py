"""A disk that is full, a folder that is read-only, files of others: nothing half, nothing lost.

    python -m tools.faults disk [--small FOLDER]

FOLDER is a mount point of a few MB; without it the script mounts a tmpfs of 2 MB (as root) and
unmounts it at the end, or is content with a limit on the size of files.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tools.faults.running import child_environment, python, scratch_folder

RESULTS: list[tuple[str, bool, str]] = []


def check(what: str, holds: bool, detail: str = "") -> None:
    RESULTS.append((what, bool(holds), detail))
    print(f"{'ok  ' if holds else 'FAIL'} {what}{f': {detail}' if detail else ''}", flush=True)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "absent"


def fill(folder: Path, leave: int) -> Path:
    """Use up a small disk but for some bytes."""
    ballast = folder / "ballast"
    ballast.unlink(missing_ok=True)
    stat = os.statvfs(folder)
    with open(ballast, "wb") as file, contextlib.suppress(OSError):
        file.write(bytes(max(0, stat.f_bavail * stat.f_frsize - leave)))
    return ballast


def command(*words: str, cwd: Path) -> tuple[int, str]:
    done = subprocess.run(
        [python(), "-m", "mixfold", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=child_environment(COLUMNS="200"),
        timeout=300,
    )
    return done.returncode, (done.stdout + done.stderr).strip()


def others(folder: Path, known: set[str]) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.name not in known)


def main() -> None:
    import mixfold as m
    from mixfold.store import ModelWriteError

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", default="")
    small_name = parser.parse_args().small
    warnings.simplefilter("ignore")
    home = scratch_folder("disk")
    mounted = not small_name
    small = Path(small_name) if small_name else home / "small"
    if mounted:
        small.mkdir(exist_ok=True)
        if subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(small)]
        ).returncode:
            sys.exit("cannot mount a small disk here: give one with --small")
    try:
        _run(m, ModelWriteError, home, small)
    finally:
        if mounted:
            subprocess.run(["umount", str(small)])
    bad = [what for what, holds, _ in RESULTS if not holds]
    print(f"\n{len(RESULTS)} checks, {len(bad)} failed")


def _run(m: Any, ModelWriteError: Any, home: Path, small: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6)) + 2 * rng.integers(0, 3, (3000, 1))
    little = m.GaussianMixture(2, random_state=0).fit(X)
    large = m.KernelPCA(2, random_state=0).fit(rng.normal(size=(3000, 60)))  # keeps its rows

    # --- saving
    path = small / "model.mixfold"
    little.save(path)
    before = digest(path)
    fill(small, 20_000)
    try:
        large.save(path)
        check("a full disk while saving raises", False)
    except ModelWriteError as error:
        check("a full disk while saving raises", "No space" in str(error), str(error)[:120])
    check("the old model is unchanged", digest(path) == before)
    check(
        "no temporary file is left",
        others(small, {"model.mixfold", "ballast"}) == [],
        str(others(small, {"model.mixfold", "ballast"})),
    )

    # --- report
    page = small / "report.html"
    (small / "ballast").unlink()
    little.report(X[:200], path=page)
    before = digest(page)
    fill(small, 10_000)
    try:
        m.MixtureOfFactorAnalyzers(3, 2, random_state=0).fit(X).report(X, path=page)
        check("a full disk while writing a report raises", False)
    except OSError as error:
        check("a full disk while writing a report raises", True, str(error)[:100])
    after = page.read_bytes() if page.exists() else b""
    check(
        "the old report is unchanged",
        digest(page) == before,
        f"{len(after)} bytes, ends in </html>: {after.rstrip().endswith(b'</html>')}",
    )

    # --- checkpoint
    for name in ("report.html", "ballast"):
        (small / name).unlink(missing_ok=True)
    fill(small, 4_000)
    kept = small / "fit.ckpt"
    try:
        long = m.GaussianMixture(8, max_iter=200, tol=0, random_state=0, checkpoint=str(kept)).fit(
            X
        )
        check(
            "a fit goes on, or says so, when its checkpoint cannot be written",
            True,
            f"finished, {long.n_iter_} iterations",
        )
    except OSError as error:
        check(
            "a fit goes on, or says so, when its checkpoint cannot be written",
            True,
            f"{type(error).__name__}: {str(error)[:140]}",
        )
    check(
        "no part of a checkpoint is left",
        others(small, {"model.mixfold", "ballast"}) == [],
        str(others(small, {"model.mixfold", "ballast"})),
    )

    # --- command line
    np.save(home / "rows.npy", np.vstack([X] * 60))
    np.save(home / "few.npy", rng.normal(size=(1500, 40)))
    little.save(home / "little.mixfold")
    for name in others(small, set()):
        (small / name).unlink()
    for words, out in (
        (("predict", home / "little.mixfold", home / "rows.npy", "--proba", "--out"), "labels.csv"),
        (("impute", home / "little.mixfold", home / "rows.npy", "--out"), "full.parquet"),
        (("sample", home / "little.mixfold", "--rows", "200000", "--out"), "drawn.csv"),
        (("report", home / "little.mixfold", home / "rows.npy", "--out"), "page.html"),
        (
            ("fit", home / "few.npy", "--components", "2", "--model", "kernel-pca", "--out"),
            "big.mixfold",
        ),
    ):
        target = small / out
        (small / "ballast").unlink(missing_ok=True)
        target.write_bytes(b"old")
        fill(small, 30_000)
        code, text = command(*words, target, cwd=home)
        check(
            f"mixfold {words[0]} to a full disk ends with 1",
            code == 1,
            f"{code}: {text.splitlines()[-1][:110] if text else ''}",
        )
        check(f"mixfold {words[0]}: no traceback", "Traceback" not in text)
        check(
            f"mixfold {words[0]}: the old file is unchanged",
            target.exists() and target.read_bytes() == b"old",
            f"{target.stat().st_size if target.exists() else 'gone'} bytes",
        )
        check(
            f"mixfold {words[0]}: nothing else is left",
            others(small, {out, "ballast"}) == [],
            str(others(small, {out, "ballast"})),
        )
        for name in others(small, set()):
            (small / name).unlink()

    # --- /dev/full and other odd places
    code, text = command(
        "predict", home / "little.mixfold", home / "rows.npy", "--out", "/dev/full", cwd=home
    )
    check(
        "mixfold predict --out /dev/full is refused",
        code in (1, 2) and "Traceback" not in text,
        f"{code}: {text.splitlines()[-1][:100]}",
    )
    done = subprocess.run(
        f"{python()} -m mixfold inspect {home}/little.mixfold > /dev/full",
        shell=True,
        capture_output=True,
        text=True,
        env=child_environment(),
    )
    check(
        "standard output on a full disk: no traceback",
        "Traceback" not in done.stderr,
        f"{done.returncode}: {done.stderr.strip()[-120:]}",
    )

    # --- a file of another kind at the place of the checkpoint
    odd = home / "notes.txt"
    odd.write_text("precious")
    try:
        m.GaussianMixture(2, random_state=0, checkpoint=str(odd)).fit(X)
        check("a checkpoint path that is another file is refused", False)
    except Exception as error:
        check(
            "a checkpoint path that is another file is refused",
            isinstance(error, ValueError),
            f"{type(error).__name__}: {str(error)[:120]}",
        )
    check("that file is unchanged", odd.read_text() == "precious")
    try:
        m.GaussianMixture(2, random_state=0, checkpoint=str(home)).fit(X)
        check("a checkpoint path that is a folder is refused", False)
    except Exception as error:
        check(
            "a checkpoint path that is a folder is refused",
            isinstance(error, (ValueError, OSError)),
            f"{type(error).__name__}: {str(error)[:120]}",
        )

    # --- permissions and links
    old = os.umask(0o077)
    little.save(home / "private.mixfold")
    os.umask(old)
    check(
        "umask 077 is honoured by save",
        (home / "private.mixfold").stat().st_mode & 0o077 == 0,
        oct((home / "private.mixfold").stat().st_mode),
    )
    victim = home / "victim"
    victim.write_text("precious")
    for name in ("link.mixfold", "link.html", "link.csv"):
        link = home / name
        link.unlink(missing_ok=True)
        link.symlink_to(victim)
    little.save(home / "link.mixfold")
    check(
        "save writes through a symbolic link",
        True,
        f"victim has {victim.stat().st_size} bytes, link is a link: {(home / 'link.mixfold').is_symlink()}",  # noqa: E501
    )
    victim.write_text("precious")
    code, _ = command(
        "predict", home / "little.mixfold", home / "rows.npy", "--out", home / "link.csv", cwd=home
    )
    check(
        "predict --out LINK replaces the link, not its target",
        victim.read_text() == "precious",
        f"exit {code}, still a link: {(home / 'link.csv').is_symlink()}",
    )
    dangling = home / "dangling.mixfold"
    dangling.unlink(missing_ok=True)
    dangling.symlink_to(home / "made-by-link")
    little.save(dangling)
    check("a dangling link is followed", (home / "made-by-link").exists())


if __name__ == "__main__":
    main()
