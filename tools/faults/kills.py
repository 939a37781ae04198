"""kill -9 in the middle of fits with a checkpoint, again and again; the end must be the same bits.

python -m tools.faults kills [--kills 20] [--only GaussianMixture,RBM] [--seed 0] [--interval 0.05]
python -m tools.faults kills --saving [--kills 40]  # while a model is saved: old or new
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import select
import signal
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tools.faults.files import parse
from tools.faults.running import child_environment, python, scratch_folder


def fits() -> Any:
    """Fits of a few seconds, by name."""
    import mixfold as m

    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 8)) + 1.2 * rng.integers(0, 5, (4000, 1)) * rng.normal(size=8)
    holes = X.copy()
    holes[rng.random(X.shape) < 0.1] = np.nan
    y = (X[:, 0] + rng.normal(size=len(X)) > 1).astype(int)
    bits = (X > 1).astype(float)
    counts = rng.poisson(
        rng.gamma(0.3, 3.0, (2500, 1)) * rng.dirichlet(np.full(300, 0.1), 2500) * 60
    ).astype(float)
    shares = rng.dirichlet([1.0, 2.0, 3.0, 4.0], 4000) + 0.3 * rng.dirichlet(
        [9.0, 1.0, 1.0, 1.0], 4000
    )
    shares /= shares.sum(axis=1, keepdims=True)
    never = dict(tol=0.0, random_state=0)
    return {
        "GaussianMixture": (
            lambda p: m.GaussianMixture(12, max_iter=250, n_init=2, checkpoint=p, **never),
            X,
            None,
        ),
        "GaussianMixture-NaN": (
            lambda p: m.GaussianMixture(4, max_iter=25, checkpoint=p, **never),
            holes,
            None,
        ),
        "KMeans": (lambda p: m.KMeans(200, max_iter=400, n_init=3, checkpoint=p, **never), X, None),
        "BayesianGaussianMixture": (
            lambda p: m.BayesianGaussianMixture(15, max_iter=150, checkpoint=p, **never),
            X,
            None,
        ),
        "Mixture-memoised": (
            lambda p: m.Mixture(
                "diag", 15, inference="vb", batch_size=2000, max_iter=60, checkpoint=p, **never
            ),
            X,
            None,
        ),
        "Mixture-gibbs": (
            lambda p: m.Mixture(
                "diag",
                6,
                inference="gibbs",
                n_chains=2,
                n_draws=80,
                burn_in=40,
                random_state=0,
                checkpoint=p,
            ),
            X,
            None,
        ),
        "Mixture-gibbs-NaN": (
            lambda p: m.Mixture(
                "diag",
                6,
                inference="gibbs",
                n_chains=2,
                n_draws=40,
                burn_in=20,
                thin=2,
                random_state=0,
                checkpoint=p,
            ),
            holes,
            None,
        ),
        "Mixture-collapsed": (
            lambda p: m.Mixture(
                "diag",
                6,
                inference="collapsed",
                n_chains=8,
                n_draws=12,
                burn_in=6,
                random_state=0,
                checkpoint=p,
            ),
            X[:1000],
            None,
        ),
        "BernoulliMixture": (
            lambda p: m.BernoulliMixture(8, max_iter=200, checkpoint=p, **never),
            bits,
            None,
        ),
        "CategoricalMixture": (
            lambda p: m.CategoricalMixture(8, max_iter=120, checkpoint=p, **never),
            np.clip(np.round(X), 0, 3),
            None,
        ),
        "PoissonMixture": (
            lambda p: m.PoissonMixture(8, max_iter=200, checkpoint=p, **never),
            np.clip(np.round(X), 0, 9),
            None,
        ),
        "MultinomialMixture": (
            lambda p: m.MultinomialMixture(8, max_iter=150, checkpoint=p, **never),
            counts,
            None,
        ),
        "FactorAnalysis": (
            lambda p: m.FactorAnalysis(3, max_iter=150, checkpoint=p, **never),
            holes,
            None,
        ),
        "PPCA": (lambda p: m.PPCA(3, max_iter=120, checkpoint=p, **never), holes, None),
        "Mixture-shares": (
            lambda p: m.Mixture("dirichlet", 6, max_iter=150, checkpoint=p, **never),
            shares,
            None,
        ),
        "Mixture-beta": (
            lambda p: m.Mixture("beta", 6, max_iter=60, checkpoint=p, **never),
            shares,
            None,
        ),
        "PPCA-ard": (
            lambda p: m.PPCA("ard", max_iter=200, checkpoint=p, **never),
            holes,
            None,
        ),
        "FactorAnalysis-priors": (
            lambda p: m.FactorAnalysis(
                4, loadings_prior="ard", noise_prior=(3, 0.1), max_iter=150, checkpoint=p, **never
            ),
            holes,
            None,
        ),
        "ICA": (lambda p: m.ICA(6, n_init=3, max_iter=300, checkpoint=p, **never), X, None),
        "GTM": (lambda p: m.GTM(2, max_iter=100, checkpoint=p, **never), holes, None),
        "KSubspaces": (
            lambda p: m.KSubspaces(30, 2, n_init=3, max_iter=200, checkpoint=p, **never),
            X,
            None,
        ),
        "MixtureOfPPCA-vb": (
            lambda p: m.MixtureOfPPCA(8, None, inference="vb", max_iter=80, checkpoint=p, **never),
            X,
            None,
        ),
        "SupervisedPPCA-ard": (
            lambda p: m.SupervisedPPCA(
                4, solver="em", loadings_prior="ard", max_iter=60, checkpoint=p, **never
            ),
            X,
            y,
        ),
        "SupervisedPPCA-ordered": (
            lambda p: m.SupervisedPPCA(2, task="ordered", max_iter=60, checkpoint=p, **never),
            X,
            np.digitize(X[:, 0], [0.0, 1.0]),
        ),
        "MatrixFactorization-kl": (
            lambda p: m.MatrixFactorization(
                6,
                loss="kullback-leibler",
                nonneg_codebook=True,
                nonneg_sources=True,
                max_iter=60,
                checkpoint=p,
                **never,
            ),
            counts,
            None,
        ),
        "PCP-mean-field": (
            lambda p: m.PCP(8, 15, inference="mean_field", max_iter=120, checkpoint=p, **never),
            counts,
            None,
        ),
        "MixtureOfFactorAnalyzers": (
            lambda p: m.MixtureOfFactorAnalyzers(6, 2, max_iter=120, checkpoint=p, **never),
            X,
            None,
        ),
        "MixtureOfPPCA": (
            lambda p: m.MixtureOfPPCA(6, 2, max_iter=120, checkpoint=p, **never),
            X,
            None,
        ),
        "GaussianPCP": (
            lambda p: m.GaussianPCP(10, 3, max_iter=200, checkpoint=p, **never),
            X,
            None,
        ),
        "SupervisedPPCA": (
            lambda p: m.SupervisedPPCA(2, solver="em", max_iter=60, checkpoint=p, **never),
            X,
            y,
        ),
        "SupervisedMixtureOfPPCA": (
            lambda p: m.SupervisedMixtureOfPPCA(4, 2, max_iter=100, checkpoint=p, **never),
            X,
            y,
        ),
        "MixtureOfFactorModels": (
            lambda p: m.MixtureOfFactorModels(3, 2, max_iter=100, checkpoint=p, **never),
            X,
            y,
        ),
        "MLiT": (lambda p: m.MLiT(4, 3, max_iter=150, checkpoint=p, **never), X, None),
        "LatentDirichletAllocation": (
            lambda p: m.LatentDirichletAllocation(10, max_iter=60, checkpoint=p, **never),
            counts,
            None,
        ),
        "LDA-online": (
            lambda p: m.LatentDirichletAllocation(
                10, learning_method="online", batch_size=64, max_iter=30, checkpoint=p, **never
            ),
            counts,
            None,
        ),
        "PLSI": (lambda p: m.PLSI(10, max_iter=400, checkpoint=p, **never), counts, None),
        "PCP": (lambda p: m.PCP(8, 15, max_iter=120, checkpoint=p, **never), counts, None),
        "MatrixFactorization": (
            lambda p: m.MatrixFactorization(6, max_iter=60, checkpoint=p, **never),
            X,
            y,
        ),
        "DeepFactorNetwork": (
            lambda p: m.DeepFactorNetwork(
                (6, 4), max_iter=40, max_epochs=15, checkpoint=p, random_state=0
            ),
            X,
            y,
        ),
        "RBM": (lambda p: m.RBM(64, max_epochs=40, random_state=0, checkpoint=p), bits, None),
        "DeepBeliefNetwork": (
            lambda p: m.DeepBeliefNetwork(
                (32, 32), max_epochs=8, fine_tune_epochs=8, random_state=0, checkpoint=p
            ),
            bits,
            y,
        ),
    }


def serve() -> None:
    """Fork a fit for each line, so that imports are paid once; no fit is made in this process."""
    from mixfold.engine import checkpoints

    warnings.simplefilter("ignore")
    out, made = os.fdopen(os.dup(1), "w"), fits()
    for line in sys.stdin:
        ask = json.loads(line)
        pid = os.fork()
        if not pid:
            log = os.open(ask["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            checkpoints._LEAST_SECONDS, checkpoints._SHARE = ask["interval"], 0.3
            os._exit(fit_and_save(made[ask["name"]], ask))
        out.write(f"{pid}\n")
        out.flush()
        out.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
        out.flush()


def fit_and_save(fit: Any, ask: dict) -> int:
    """In the forked process: the fit, its seconds, the model."""
    try:
        make, X, y = fit
        model = make(ask["checkpoint"])
        began = time.monotonic()
        model.fit(X, y) if y is not None else model.fit(X)
        print(f"fitted {time.monotonic() - began:.2f}", flush=True)
        model.save(ask["out"])
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


class Fit:
    """One fit in a process of its own."""

    def __init__(self, server: Any, log: Path, **ask: Any) -> None:
        self.server, self.log, self.code = server, log, None
        server.stdin.write(json.dumps({**ask, "log": str(log)}) + "\n")
        server.stdin.flush()
        self.pid = int(server.stdout.readline())

    def poll(self) -> int | None:
        """The exit code, None while the fit goes on."""
        if self.code is None and select.select([self.server.stdout], [], [], 0.0)[0]:
            self.code = int(self.server.stdout.readline())
        return self.code

    def wait(self, seconds: float = math.inf) -> int | None:
        until = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        return self.code

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def said(self) -> str:
        return self.log.read_text(errors="replace").strip()


def start_server() -> subprocess.Popen:
    return subprocess.Popen(
        [python(), "-u", "-m", "tools.faults", "kills", "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env=child_environment(),
    )


def state(path: Path) -> Any:
    """What a model file holds, save the time that it took."""
    _, document, tensors = parse(path.read_bytes())
    return {name: (*tuple(map(str, t[:2])), t[2]) for name, t in tensors.items()}, document["tree"][
        "state"
    ]


def differences(a: Path, b: Path) -> list[str]:
    (ta, sa), (tb, sb) = state(a), state(b)
    wrong = [name for name in sorted(set(ta) | set(tb)) if ta.get(name) != tb.get(name)]
    return wrong + [
        key for key in sorted(set(sa) | set(sb)) if sa.get(key) != sb.get(key) and key not in wrong
    ]


def murders(server: Any, name: str, kills: int, rng: random.Random, interval: float) -> str:
    home = scratch_folder("crash")
    checkpoint, whole, pieces = (
        home / f"{name}.ckpt",
        home / f"{name}.whole",
        home / f"{name}.pieces",
    )
    for path in (checkpoint, whole, pieces):
        path.unlink(missing_ok=True)

    def start(out: Path) -> Fit:
        ask = dict(name=name, checkpoint=str(checkpoint), out=str(out), interval=interval)
        return Fit(server, home / f"{name}.log", **ask)

    fit, began, first = start(whole), time.monotonic(), None
    while fit.poll() is None:
        if first is None and checkpoint.exists():
            first = time.monotonic() - began
        time.sleep(0.005)
    if fit.code:
        return f"{name}: could not be fitted: {fit.said().splitlines()[-1][:150]}"
    seconds = float(fit.said().split()[-1])
    if first is None:
        return f"{name}: fit of {seconds:.1f} s wrote no checkpoint at all"
    done = caught = runs = resumed = 0
    wrong: list[str] = []
    left: list[str] = []
    began = time.monotonic()
    # a kill before the first checkpoint is one, too, but as many as asked are caught with one
    while caught < kills and time.monotonic() - began < 60 + 6 * kills * max(1.0, seconds):
        resumed += checkpoint.exists()
        fit = start(pieces)
        if _alive_after(fit, checkpoint, rng, seconds):
            fit.kill()
            done += 1
            caught += checkpoint.exists()
            if caught < kills:
                continue
            resumed += checkpoint.exists()
            fit = start(pieces)  # and now to the end
        fit.wait()
        runs += 1
        if fit.code:
            wrong.append(fit.said().splitlines()[-1][:200])
            checkpoint.unlink(missing_ok=True)
        else:
            wrong += differences(whole, pieces)
        # (a kill while the model is saved leaves a file of another name, which no fit knows of)
        left += [p.name for p in home.glob(f".{name}.ckpt.*.tmp")]
    verdict = "same bits" if not wrong else f"DIFFERENT: {sorted(set(wrong))[:4]}"
    return (
        f"{name}: fit of {seconds:.1f} s (first checkpoint after {first:.1f} s), {done} kills, {caught} of them with a checkpoint, {resumed} resumed, {runs} ends, {verdict}"  # noqa: E501
        f"{f', {len(left)} temporary files left' if left else ''}"
    )


def _alive_after(fit: Fit, checkpoint: Path, rng: random.Random, seconds: float) -> bool:
    """Wait for some writes of the checkpoint and a moment (or just for a while); False if it has ended."""  # noqa: E501
    patience = time.monotonic() + 20 * max(1.0, seconds)
    writes = rng.randint(1, 3) if rng.random() < 0.8 else 0
    seen = checkpoint.stat().st_mtime_ns if checkpoint.exists() else None  # of an earlier kill
    while writes and fit.poll() is None and time.monotonic() < patience:
        now = checkpoint.stat().st_mtime_ns if checkpoint.exists() else None
        if now is not None and now != seen:
            seen, writes = now, writes - 1
        time.sleep(0.002)
    return fit.wait(rng.uniform(0.0, min(0.45, 0.1 * seconds))) is None


def saving(kills: int, rng: random.Random) -> None:
    """Kill a process that saves two models in turn to one path."""
    home = scratch_folder("saving")
    path = home / "m.mixfold"
    path.unlink(missing_ok=True)
    code = (
        "import sys, numpy as np, mixfold, warnings; warnings.simplefilter('ignore')\n"
        "from mixfold import store\n"
        "big = [np.full((400000, 4), v) for v in (1.0, 2.0)]\n"
        "i = 0\n"
        "while True:\n"
        "    store.write(sys.argv[1], 'example', {'a': big[i % 2], 'v': float(i % 2 + 1)}); i += 1\n"  # noqa: E501
        "    if i == 1: print('ready', flush=True)\n"  # there is a whole file from here on
    )
    check = (
        "import sys, numpy as np; from mixfold import store\nfor line in sys.stdin:\n"
        "    t = store.read(line.strip()); assert (t['a'] == t['v']).all() and t['a'].shape == (400000, 4); print('whole', flush=True)\n"  # noqa: E501
    )
    checker = subprocess.Popen(
        [python(), "-c", check],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=child_environment(),
    )
    whole = 0
    for _ in range(kills):
        process = subprocess.Popen(
            [python(), "-c", code, str(path)],
            stdout=subprocess.PIPE,
            text=True,
            env=child_environment(),
        )
        process.stdout.readline()
        time.sleep(rng.uniform(0, 0.8))
        process.kill()
        process.wait()
        checker.stdin.write(f"{path}\n")
        checker.stdin.flush()
        whole += checker.stdout.readline().strip() == "whole"
    checker.stdin.close()
    checker.wait()
    left = sorted(p.name for p in home.iterdir() if p.name.endswith(".tmp"))
    size = sum((home / name).stat().st_size for name in left)
    print(
        f"{kills} kills while saving: {whole} whole files; {len(left)} temporary files left ({size / 1e6:.0f} MB)"  # noqa: E501
    )


def main() -> None:
    if sys.argv[1:] == ["--serve"]:
        return serve()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--interval", type=float, default=0.05, help="seconds between checkpoints")
    parser.add_argument("--saving", action="store_true")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    if options.saving:
        return saving(options.kills, rng)
    server = start_server()
    for name in options.only.split(",") if options.only else list(fits()):
        print(murders(server, name, options.kills, rng, options.interval), flush=True)
    server.stdin.close()
    server.wait()
    server.stdout.close()
    return None


if __name__ == "__main__":
    main()
