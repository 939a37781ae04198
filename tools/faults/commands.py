"""The command line with odd files, names, settings and places.

    python -m tools.faults commands [--only WORD] [--long]      # --long: a line of 1 GB, archives that unpack to 8 GB

A command passes if it ends with 0, 1 or 2 within its time, prints no traceback and does not call
its failure a defect of its own.
"""  # noqa: E501

from __future__ import annotations

import argparse
import gzip
import io
import os
import pickle
import resource
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tools.faults.running import child_environment, scratch_folder

COUNT = {"ok": 0, "bad": 0}
ONLY = ""


def run(argv: Any, cwd: Any, seconds: Any = 90.0, uid: Any = None, memory: Any = 6 * 2**30) -> Any:
    """Exit code (or what happened), output and time of a command, in a forked child."""
    out = cwd / ".out"
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        try:
            os.chdir(cwd)
            handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            if uid is not None:
                os.setgid(uid)
                os.setuid(uid)
            sys.stdout, sys.stderr = (
                os.fdopen(1, "w", closefd=False),
                os.fdopen(2, "w", closefd=False),
            )
            from mixfold.cli import main

            try:
                main([str(word) for word in argv])
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else (0 if end.code is None else 1)
            except BaseException:
                import traceback

                traceback.print_exc()
                code = 99
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        finally:
            os._exit(98)
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() - began > seconds:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            return "hang", out.read_text(errors="replace"), seconds
        time.sleep(0.02)
    text = out.read_text(errors="replace") if out.exists() else ""
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else f"signal {os.WTERMSIG(status)}"
    return code, text, time.monotonic() - began


def shorten_output(text: Any) -> Any:
    lines = [line.strip("│ ╭╰─╮╯") for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("Usage", "Try"))]
    return " / ".join(lines)[:230]


def case(name: Any, argv: Any, cwd: Any, expect: Any = (0, 1, 2), **options: Any) -> Any:
    if ONLY and ONLY not in name:
        return None, ""
    code, text, seconds = run(argv, cwd, **options)
    wrong = code not in expect or "Traceback" in text or "looks like a defect" in text
    COUNT["bad" if wrong else "ok"] += 1
    print(
        f"{'BAD ' if wrong else 'ok  '} {name} -> {code} in {seconds:.1f} s: {shorten_output(text)!r}",  # noqa: E501
        flush=True,
    )
    return code, text


# ------------------------------------------------------------------ files


def rows(n: Any = 60, d: Any = 3) -> Any:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)) + 4 * rng.integers(0, 2, (n, 1))


def csv_text(X: Any, names: Any = None, sep: str = ",") -> str:
    names = names or [f"c{j}" for j in range(X.shape[1])]
    return sep.join(names) + "\n" + "\n".join(sep.join(map(repr, r.tolist())) for r in X) + "\n"


class Bomb:
    """An object whose unpickling would leave a mark."""

    def __init__(self, mark: Any) -> Any:
        self.mark = mark

    def __reduce__(self) -> Any:
        return (os.system, (f"touch {self.mark}",))


def inputs(home: Path) -> Any:
    """Odd files by name."""
    X = rows()
    good = csv_text(X)
    plain = {
        "empty.csv": b"",
        "header.csv": b"a,b,c\n",
        "blank.csv": b"\n\n\n",
        "one-row.csv": b"a,b\n1,2\n",
        "binary.csv": np.random.default_rng(1).bytes(5000),
        "binary.parquet": np.random.default_rng(1).bytes(5000),
        "nul.csv": good.replace("c1", "c\x001").encode(),
        "bom.csv": b"\xef\xbb\xbf" + good.encode(),
        "utf16.csv": good.encode("utf-16"),
        "latin1.csv": good.replace("c1", "caf\u00e9").encode("latin-1"),
        "crlf.csv": good.replace("\n", "\r\n").encode(),
        "cr.csv": good.replace("\n", "\r").encode(),
        "semicolon.csv": csv_text(X, sep=";").encode(),
        "ragged.csv": (good + "1,2\n").encode(),
        "long-row.csv": (good + "1,2,3,4,5\n").encode(),
        "inf.csv": (good + "inf,1,2\n").encode(),
        "words.csv": (good + "n/a,1,2\n").encode(),
        "quotes.csv": (good + '"1","2","3').encode(),
        "hex.csv": (good + "0x10,1,2\n").encode(),
        "huge.csv": (good + "1e999,1,2\n").encode(),
        "long-number.csv": (good + "1" * 100000 + ",1,2\n").encode(),
        "duplicate.csv": csv_text(X, ["a", "a", "b"]).encode(),
        "unnamed.csv": csv_text(X, ["", "", ""]).encode(),
        "dates.csv": b"d,x\n" + b"2020-01-01,1\n" * 30,
        "truncated.npy": None,
        "text.txt": b"some words here\nother words there\n",
        "prose.md": b"# a\n",
        "noextension": good.encode(),
        "UPPER.CSV": good.encode(),
        "table.xlsx": b"PK\x03\x04junk",
        "spaces in name.csv": good.encode(),
        "new\nline.csv": good.encode(),
        "-dash.csv": good.encode(),
        "uni\u202ecode\u00e9.csv": good.encode(),
        "$(touch x).csv": good.encode(),
        "'quote.csv": good.encode(),
        "[bold]markup[bold.csv": good.encode(),
        "escape\x1b[2J.csv": good.encode(),
        "markup-names.csv": csv_text(X, ["[/]", "[bold]b", "[link=x]c"]).encode(),
        "escape-names.csv": csv_text(X, ["\x1b[2Ja", "b\x1b]0;t\x07", "c\x08"]).encode(),
        "formula-names.csv": csv_text(X, ["=1+1", "@SUM(A1)", "+cmd"]).encode(),
        "all-missing.csv": b"a,b\n" + b",\n" * 40,
        "constant.csv": b"a,b\n" + b"1,2\n" * 40,
        "gz.csv.gz": gzip.compress(good.encode()),
        "bad.csv.gz": b"\x1f\x8bjunk",
        "truncated.csv.gz": gzip.compress(good.encode())[:-20],
    }
    for name, content in plain.items():
        if content is not None:
            (home / name).write_bytes(content)
    many = csv_text(rows(20, 5000))
    (home / "wide.csv").write_text(many)
    np.save(home / "good.npy", X)
    content = (home / "good.npy").read_bytes()
    (home / "truncated.npy").write_bytes(content[:-100])
    (home / "header-only.npy").write_bytes(content[:128])
    np.save(home / "one-d.npy", X[:, 0])
    np.save(home / "zero-d.npy", np.float64(3))
    np.save(home / "fields.npy", np.zeros(5, dtype=[("a", "f8")]))
    np.save(home / "text.npy", np.array([["a", "b"]]))
    np.save(home / "none.npy", np.zeros((0, 3)))
    np.save(home / "complex.npy", X + 1j)
    mark = home / "executed"
    np.save(home / "pickle.npy", np.array([[Bomb(str(mark))]], dtype=object), allow_pickle=True)
    header = (
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976, 8), }".ljust(
            117
        )
        + b"\n"
    )
    (home / "huge-shape.npy").write_bytes(header)
    evil = (
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': __import__('os').system('touch executed'), 'fortran_order': False, 'shape': (1, 1), }".ljust(  # noqa: E501
            117
        )
        + b"\n"
    )
    (home / "code.npy").write_bytes(evil)
    np.savez(
        home / "pickle.npz",
        data=np.array([Bomb(str(mark))], dtype=object),
        indices=[0],
        indptr=[0, 1],
        shape=[1, 1],
    )
    (home / "pickle.csv").write_bytes(pickle.dumps(Bomb(str(mark))))
    np.savez(
        home / "bad-indices.npz",
        data=np.ones(3),
        indices=np.array([0, 99, -1]),
        indptr=np.array([0, 1, 3]),
        shape=np.array([2, 4]),
    )
    np.savez(home / "other.npz", x=np.ones(3))
    (home / "junk.npz").write_bytes(b"PK\x03\x04" + bytes(50))
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({f"c{j}": X[:, j] for j in range(3)})
    parquet.write_table(table, home / "good.parquet")
    content = (home / "good.parquet").read_bytes()
    (home / "truncated.parquet").write_bytes(content[: len(content) // 2])
    (home / "flipped.parquet").write_bytes(
        content[:200] + bytes(b ^ 255 for b in content[200:260]) + content[260:]
    )
    parquet.write_table(
        pa.table({"c0": pa.array([[1.0], [2.0]]), "c1": pa.array(["a", "b"])}),
        home / "nested.parquet",
    )
    parquet.write_table(table.slice(0, 0), home / "no-rows.parquet")
    parquet.write_table(
        pa.table({"c0": pa.nulls(20), "c1": np.arange(20.0)}), home / "nulls.parquet"
    )
    (home / "folder").mkdir(exist_ok=True)
    (home / "mixed").mkdir(exist_ok=True)
    parquet.write_table(table, home / "mixed" / "a.parquet")
    (home / "mixed" / "b.csv").write_text(good)
    (home / "loop").mkdir(exist_ok=True)
    if not (home / "loop" / "self").is_symlink():
        (home / "loop" / "self").symlink_to(home / "loop")
    for name, _kind in (
        ("fifo.csv", "pipe"),
        ("fifo.parquet", "pipe"),
        ("fifo.npy", "pipe"),
        ("fifo.mixfold", "pipe"),
    ):
        if not (home / name).exists():
            os.mkfifo(home / name)
    for name, target in (
        ("zero.csv", "/dev/zero"),
        ("random.parquet", "/dev/urandom"),
        ("zero.npy", "/dev/zero"),
        ("dangling.csv", "/nowhere"),
    ):
        if not (home / name).is_symlink():
            (home / name).symlink_to(target)
    names = [
        *plain,
        "wide.csv",
        "truncated.npy",
        "header-only.npy",
        "one-d.npy",
        "zero-d.npy",
        "fields.npy",
        "text.npy",
        "none.npy",
        "complex.npy",
        "pickle.npy",
        "huge-shape.npy",
        "code.npy",
        "pickle.npz",
        "bad-indices.npz",
        "other.npz",
        "junk.npz",
        "pickle.csv",
        "truncated.parquet",
        "flipped.parquet",
        "nested.parquet",
        "no-rows.parquet",
        "nulls.parquet",
        "folder",
        "mixed",
        "loop",
        "fifo.csv",
        "fifo.parquet",
        "fifo.npy",
        "zero.csv",
        "random.parquet",
        "zero.npy",
        "dangling.csv",
        "missing.csv",
        ".",
        "..",
        "/",
        "",
    ]
    return list(dict.fromkeys(names))


# ------------------------------------------------------------------ groups of cases


def odd_inputs(home: Path) -> Any:
    for name in inputs(home):
        case(
            f"fit {name!r}",
            ["fit", "--components", "2", "--out", "m.mixfold", "--", name],
            home,
            seconds=60,
        )
    for name in (
        "text.txt",
        "folder",
        "pickle.npz",
        "bad-indices.npz",
        "junk.npz",
        "other.npz",
        "binary.csv",
        "good.npy",
    ):
        case(
            f"fit --model lda {name!r}",
            ["fit", "--model", "lda", "--components", "2", "--out", "m.mixfold", name],
            home,
            seconds=60,
        )
    print("pickles executed:", (home / "executed").exists())
    COUNT["bad"] += (home / "executed").exists()


def odd_models(home: Path) -> Any:
    case(
        "make a model",
        ["fit", "good.parquet", "--components", "2", "--out", "good.mixfold"],
        home,
        expect=(0,),
    )
    for name in (
        "empty.csv",
        "binary.csv",
        "good.npy",
        "folder",
        "fifo.mixfold",
        "missing.csv",
        "pickle.csv",
        "zero.csv",
        "good.parquet",
    ):
        for verb in ("inspect", "predict"):
            words = [verb, name] + (["good.parquet", "--out", "p.csv"] if verb == "predict" else [])
            case(f"{verb} model {name!r}", words, home, seconds=60)


def odd_outputs(home: Path) -> Any:
    data = home / "precious.parquet"
    shutil.copy(home / "good.parquet", data)
    text = home / "precious.csv"
    shutil.copy(home / "crlf.csv", text)
    before = data.read_bytes(), text.read_bytes(), (home / "good.mixfold").read_bytes()

    def unchanged(what: Any) -> Any:
        now = data.read_bytes(), text.read_bytes(), (home / "good.mixfold").read_bytes()
        same = now == before
        COUNT["ok" if same else "bad"] += 1
        if not same:
            print(f"BAD  {what} overwrote its input")
            (
                data.write_bytes(before[0]),
                text.write_bytes(before[1]),
                (home / "good.mixfold").write_bytes(before[2]),
            )

    for verb in ("predict", "score", "impute"):
        case(
            f"{verb} over its table (parquet)",
            [verb, "good.mixfold", "precious.parquet", "--out", "precious.parquet"],
            home,
        )
        unchanged(f"{verb} parquet")
        case(
            f"{verb} over its table (csv)",
            [verb, "good.mixfold", "precious.csv", "--out", "./precious.csv"],
            home,
        )
        unchanged(f"{verb} csv")
    case(
        "fit over its table",
        ["fit", "precious.parquet", "--components", "2", "--out", "precious.parquet"],
        home,
    )
    unchanged("fit parquet")
    case(
        "fit over its table (csv)",
        ["fit", "precious.csv", "--components", "2", "--out", "precious.csv"],
        home,
    )
    unchanged("fit csv")
    case(
        "sample over the model",
        ["sample", "good.mixfold", "--rows", "5", "--out", "good.mixfold"],
        home,
    )
    unchanged("sample")
    case(
        "select over its table",
        ["select", "precious.parquet", "--components", "1:2", "--out", "precious.parquet"],
        home,
    )
    unchanged("select")
    case("report over the model", ["report", "good.mixfold", "--out", "good.mixfold"], home)
    unchanged("report")
    shutil.copy(home / "good.mixfold", home / "model.html")
    case(
        "report over a model named .html",
        ["report", "model.html", "--out", "model.html"],
        home,
        expect=(1, 2),
    )
    for out in (
        "",
        ".",
        "folder",
        "nowhere/x.csv",
        "x.txt",
        "x",
        "/dev/null",
        "/proc/x.csv",
        "a" * 300 + ".csv",
        "new\nline.csv",
        "sp ace é.csv",
        "-x.csv",
        "fifo.csv",
        "zero.csv",
        "dangling.csv",
    ):
        case(
            f"predict --out {out[:40]!r}",
            ["predict", "good.mixfold", "good.parquet", f"--out={out}"],
            home,
            seconds=60,
        )
        case(
            f"fit --out {out[:40]!r}",
            ["fit", "good.parquet", "--components", "2", f"--out={out}"],
            home,
            seconds=60,
        )


def odd_settings(home: Path) -> Any:
    sets = (
        "max_iter=abc",
        "max_iter=-1",
        "tol=nan",
        "tol=1e999",
        "random_state=-1",
        "executor=dask",
        "executor=rm -rf",
        "n_jobs=0",
        "n_jobs=99999999",
        "covariance_type=",
        "=3",
        "x",
        "n_components=3",
        "checkpoint=folder",
        "checkpoint=good.parquet",
        "time_budget=0",
        "weights_init=[1,2,3]",
        "means_init=[[0]]",
        "tol=" + "-" * 5000 + "1",
        "tol=" + "(" * 300 + "1" + ")" * 300,
        "verbose=2",
        "means_init=__import__('os').system('touch executed')",
        "weights_init=" + "[" * 90 + "]" * 90,
        "max_iter=" + "9" * 5000,
        "random_state=2",
        "warm_start=true",
        "reg_covar=-1",
        "init_params=kmeans",
    )
    for word in sets:
        case(
            f"--set {word[:50]}",
            ["fit", "good.parquet", "--components", "2", "--out", "m.mixfold", "--set", word],
            home,
            seconds=60,
        )
    for words in (
        ["--components", "0"],
        ["--components", "-3"],
        ["--components", "1000000000"],
        ["--components", "1e3"],
        ["--components", ""],
        ["--components", "99999999999999999999"],
        ["--columns", ""],
        ["--columns", "c0,,c1"],
        ["--columns", "nothing"],
        ["--columns", "c0,c0"],
        ["--weights", "nothing"],
        ["--model", "nothing"],
        ["--model", "ppca"],
        ["--model", "kernel-pca"],
        ["--model", "lda"],
        ["--model", "rbm"],
        ["--model", "mixture", "--family", "poisson"],
        ["--family", "x=y"],
        ["--seed", "-1"],
        ["--seed", "99999999999999999999999"],
    ):
        base = ["fit", "good.parquet", "--out", "m.mixfold"] + (
            [] if "--components" in words or "--model" in words else ["--components", "2"]
        )
        case(f"fit {' '.join(words)}", base + words, home, seconds=90)
    for words in (
        ["sample", "good.mixfold", "--rows", "-1", "--out", "s.csv"],
        ["sample", "good.mixfold", "--rows", "0", "--out", "s.csv"],
        ["predict", "good.mixfold", "good.npy", "--out", "p.csv"],
        ["predict", "good.mixfold", "one-d.npy", "--out", "p.csv"],
        ["predict", "good.mixfold", "markup-names.csv", "--out", "p.csv"],
        ["transform", "good.mixfold", "good.parquet", "--out", "p.csv"],
        ["predict", "good.mixfold", "good.parquet", "--keep", "nothing", "--out", "p.csv"],
        ["topics", "good.mixfold"],
        ["reproduce", "nothing"],
        ["reproduce", "--list"],
        [
            "report",
            "good.mixfold",
            "good.parquet",
            "--image-shape",
            "9999999x9999999",
            "--out",
            "r.html",
        ],
        ["report", "good.mixfold", "good.parquet", "--target", "c0", "--out", "r.html"],
        ["report", "good.mixfold", "good.parquet", "--rows", "1", "--out", "r.html"],
        [],
        ["nothing"],
        ["--version"],
        ["fit"],
        ["inspect"],
    ):
        case(" ".join(words), words, home, seconds=90)


def odd_names(home: Path) -> Any:
    """Names and labels that a terminal, a spreadsheet or a console library would read as commands."""  # noqa: E501
    for file in ("markup-names.csv", "escape-names.csv", "formula-names.csv"):
        stem = file.partition("-")[0]
        case(
            f"fit {file}",
            ["fit", file, "--components", "2", "--out", f"{stem}.mixfold"],
            home,
            expect=(0,),
        )
        for words in (
            ["inspect", f"{stem}.mixfold"],
            ["predict", f"{stem}.mixfold", file, "--out", f"{stem}-p.csv"],
            ["impute", f"{stem}.mixfold", file, "--out", f"{stem}-i.csv"],
            ["sample", f"{stem}.mixfold", "--rows", "3", "--out", f"{stem}-s.csv"],
            ["report", f"{stem}.mixfold", file, "--out", f"{stem}.html"],
            ["select", file, "--components", "1:2", "--out", f"{stem}-b.mixfold"],
            ["fit", file, "--model", "ppca", "--out", f"{stem}-f.mixfold"],
            ["inspect", f"{stem}-f.mixfold"],
        ):
            _code, _ = case(f"{words[0]} of {file}", words, home, expect=(0,))
            raw = (home / ".out").read_bytes()
            if b"\x1b[2J" in raw or b"\x1b]0;" in raw or b"\x08" in raw:
                COUNT["bad"] += 1
                print(f"BAD  {words[0]} prints control characters of a name to the terminal")
    X = rows()
    labels = np.array(["=HYPERLINK(1)", "@x"])[(X[:, 0] > 2).astype(int)]
    (home / "labels.csv").write_text(
        "a,b,label\n" + "\n".join(f'{r[0]},{r[1]},"{k}"' for r, k in zip(X, labels, strict=True))
    )
    case(
        "fit --target with formulas",
        [
            "fit",
            "labels.csv",
            "--model",
            "supervised-ppca",
            "--components",
            "1",
            "--target",
            "label",
            "--out",
            "l.mixfold",
        ],
        home,
    )
    case(
        "predict with formulas",
        ["predict", "l.mixfold", "labels.csv", "--keep", "label", "--out", "l.csv"],
        home,
    )
    if (home / "l.csv").exists():
        print("     first lines:", (home / "l.csv").read_text().splitlines()[:3])


def no_rights(home: Path) -> Any:
    """Without the rights of root: files that may not be read, folders that may not be written."""
    if os.geteuid() == 0 and not os.environ.get("FAULTS_NO_RIGHTS"):
        caps = "-dac_override,-dac_read_search,-fowner"
        done = subprocess.run(
            [
                "setpriv",
                f"--bounding-set={caps}",
                "--inh-caps=-all",
                sys.executable,
                "-m",
                "tools.faults",
                "commands",
                "--groups",
                "rights",
            ],
            env={**os.environ, "FAULTS_NO_RIGHTS": "1"},
        )
        COUNT["bad"] += done.returncode != 0
        return
    place = home / "rights"
    if place.exists():
        shutil.rmtree(place)
    place.mkdir()
    os.chmod(place, 0o777)
    shutil.copy(home / "good.parquet", place / "good.parquet")
    shutil.copy(home / "good.parquet", place / "secret.parquet")
    shutil.copy(home / "good.mixfold", place / "good.mixfold")
    os.chmod(place / "secret.parquet", 0o000)
    (place / "closed").mkdir()
    os.chmod(place / "closed", 0o555)
    for name, words in (
        (
            "a table that may not be read",
            ["fit", "secret.parquet", "--components", "2", "--out", "m.mixfold"],
        ),
        (
            "fit to a read-only folder",
            ["fit", "good.parquet", "--components", "2", "--out", "closed/m.mixfold"],
        ),
        (
            "predict to a read-only folder",
            ["predict", "good.mixfold", "good.parquet", "--out", "closed/p.csv"],
        ),
        (
            "report to a read-only folder",
            ["report", "good.mixfold", "good.parquet", "--out", "closed/r.html"],
        ),
        (
            "checkpoint in a read-only folder",
            [
                "fit",
                "good.parquet",
                "--components",
                "2",
                "--set",
                "checkpoint=closed/c",
                "--out",
                "m.mixfold",
            ],
        ),
        (
            "a folder that may be written",
            ["fit", "good.parquet", "--components", "2", "--out", "m.mixfold"],
        ),
    ):
        case(name, words, place)
    os.chmod(place / "closed", 0o755)


def long_files(home: Path) -> Any:
    path = home / "one-line.csv"
    if not path.exists():
        with open(path, "w") as file:
            file.write("a,b\n")
            for _ in range(1000):
                file.write("1" * 1_000_000)
            file.write(",2\n")
    case(
        "a line of 1 GB",
        ["fit", "one-line.csv", "--components", "1", "--out", "m.mixfold"],
        home,
        seconds=300,
        memory=8 * 2**30,
    )
    path.unlink()
    with open(path, "w") as file:
        for _ in range(1000):
            file.write("x," * 500_000)
    case(
        "a header of 1 GB",
        ["fit", "one-line.csv", "--components", "1", "--out", "m.mixfold"],
        home,
        seconds=300,
        memory=8 * 2**30,
    )
    path.unlink()
    bomb = home / "bomb.npz"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("data", "indices"):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                buffer = io.BytesIO()
                np.lib.format.write_array_header_1_0(
                    buffer,
                    {
                        "descr": "<f8" if name == "data" else "<i4",
                        "fortran_order": False,
                        "shape": (10**9,),
                    },
                )
                file.write(buffer.getvalue())
                for _ in range(800 if name == "data" else 400):
                    file.write(bytes(10_000_000))
        for name, value in (("indptr", np.array([0, 10**9])), ("shape", np.array([1, 10]))):
            with archive.open(f"{name}.npy", "w") as file:
                np.save(file, value)
    print(f"bomb.npz: {bomb.stat().st_size / 1e6:.0f} MB that unpack to 12 GB")
    case(
        "an archive that unpacks to 12 GB",
        ["fit", "bomb.npz", "--model", "lda", "--components", "2", "--out", "m.mixfold"],
        home,
        seconds=300,
        memory=4 * 2**30,
    )
    bomb.unlink()


GROUPS = {
    "inputs": odd_inputs,
    "models": odd_models,
    "outputs": odd_outputs,
    "settings": odd_settings,
    "names": odd_names,
    "rights": no_rights,
}


def main() -> None:
    global ONLY
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="")
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    ONLY = options.only
    os.environ.update(child_environment(COLUMNS="160", NO_COLOR="1", TERM="dumb"))
    import mixfold.cli
    import mixfold.estimators.mixtures.gaussian_mixture  # noqa: F401

    home = scratch_folder("cli")
    os.chmod(home, 0o777)
    for name in options.groups.split(","):
        print(f"--- {name}")
        GROUPS[name](home)
    if options.long:
        long_files(home)
    print(f"\n{COUNT['ok'] + COUNT['bad']} commands and checks, {COUNT['bad']} bad")


if __name__ == "__main__":
    main()
