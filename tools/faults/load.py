"""Threads, forks, many fits, large tables.

python -m tools.faults load threads | predict | leak [--fits 1000] | fork | threads-count | errstate | large [--rows 10000000] | cache
"""  # noqa: E501

from __future__ import annotations

import argparse
import gc
import hashlib
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import traceback
import warnings
from typing import Any

import numpy as np

from tools.faults.running import (
    child_environment,
    is_of_the_library,
    peak_megabytes,
    python,
    resident_megabytes,
    scratch_folder,
)

os.environ.update({k: v for k, v in child_environment().items() if k == "NUMBA_CACHE_DIR"})


def table(n: Any = 6000, d: Any = 5, seed: Any = 0) -> Any:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 2.5 * rng.integers(0, 3, (n, 1)) * rng.normal(size=d)


def estimators() -> Any:
    import mixfold as m

    X = table()
    holes = X.copy()
    holes[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    counts = np.random.default_rng(2).poisson(2.0, (300, 20)).astype(float)
    y = (X[:, 0] > 1).astype(int)
    bits = (X > 1).astype(float)
    s = dict(random_state=0)
    return {
        "GaussianMixture": lambda: m.GaussianMixture(3, max_iter=20, **s).fit(X),
        "GaussianMixture-NaN": lambda: m.GaussianMixture(3, max_iter=5, **s).fit(holes),
        "KMeans": lambda: m.KMeans(5, max_iter=20, **s).fit(X),
        "MixtureOfFactorAnalyzers": lambda: m.MixtureOfFactorAnalyzers(3, 1, max_iter=10, **s).fit(
            X
        ),
        "BayesianGaussianMixture": lambda: m.BayesianGaussianMixture(4, max_iter=10, **s).fit(X),
        "LatentDirichletAllocation": lambda: m.LatentDirichletAllocation(3, max_iter=10, **s).fit(
            counts
        ),
        "PPCA": lambda: m.PPCA(2, max_iter=10, **s).fit(holes),
        "SupervisedPPCA": lambda: m.SupervisedPPCA(1, **s).fit(X, y),
        "KernelPCA": lambda: m.KernelPCA(2, **s).fit(X[:800]),
        "RBM": lambda: m.RBM(4, max_epochs=2, **s).fit(bits[:1000]),
        "MatrixFactorization": lambda: m.MatrixFactorization(2, max_iter=5, **s).fit(X[:1000]),
        "PoissonMixture": lambda: m.PoissonMixture(2, max_iter=10, **s).fit(counts),
    }


def fingerprint(model: Any) -> str:
    digest = hashlib.sha256()
    for name in sorted(vars(model)):
        value = getattr(model, name)
        if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f":
            digest.update(name.encode() + np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()[:12]


def threads(_: Any) -> Any:
    """The same fits from four threads at once: the results of one thread, no error."""
    made = estimators()
    alone = {name: fingerprint(fit()) for name, fit in made.items()}
    wrong, errors = [], []

    def work(k: Any) -> Any:
        for name, fit in list(made.items())[k:] + list(made.items())[:k]:
            try:
                if fingerprint(fit()) != alone[name]:
                    wrong.append(name)
            except Exception as error:
                errors.append(
                    (name, f"{type(error).__name__}: {error}"[:120], traceback.format_exc()[-400:])
                )

    pool = [threading.Thread(target=work, args=(3 * k,)) for k in range(4)]
    for one in pool:
        one.start()
    for one in pool:
        one.join()
    print(
        f"4 threads x {len(made)} fits: {len(errors)} errors {errors[:2]}, {len(wrong)} other results {sorted(set(wrong))}"  # noqa: E501
    )
    import threadpoolctl

    print(
        "BLAS threads afterwards:",
        [
            (i["internal_api"], i["num_threads"])
            for i in threadpoolctl.threadpool_info()
            if i["user_api"] == "blas"
        ],
    )


def predict(_: Any) -> Any:
    """One model asked by many threads."""
    import mixfold as m

    X = table(20000)
    model = m.GaussianMixture(4, random_state=0).fit(X)
    expected = model.predict_proba(X), model.score_samples(X), model.impute(X[:100])
    bad, errors = [0], []

    def work() -> Any:
        for _ in range(10):
            try:
                got = model.predict_proba(X), model.score_samples(X), model.impute(X[:100])
                bad[0] += not all(np.array_equal(a, b) for a, b in zip(got, expected, strict=True))
            except Exception as error:
                errors.append(repr(error)[:120])

    pool = [threading.Thread(target=work) for _ in range(16)]
    for one in pool:
        one.start()
    for one in pool:
        one.join()
    print(
        f"16 threads x 30 questions to one model: {bad[0]} other answers, {len(errors)} errors {errors[:2]}"  # noqa: E501
    )


def leak(options: Any) -> Any:
    """Memory, threads and open files over many fits."""
    import mixfold as m

    X = table(400, 4)
    counts = np.random.default_rng(2).poisson(2.0, (60, 10)).astype(float)
    y = (X[:, 0] > 0).astype(int)
    kinds = (
        lambda: m.GaussianMixture(2, max_iter=5, random_state=0).fit(X).predict(X),
        lambda: m.PPCA(2, random_state=0).fit(X).transform(X),
        lambda: m.KMeans(3, max_iter=5, random_state=0).fit(X).predict(X),
        lambda: m.LatentDirichletAllocation(2, max_iter=3, random_state=0).fit(counts),
        lambda: m.SupervisedPPCA(1, random_state=0).fit(X, y).predict(X),
        lambda: m.GaussianMixture(2, max_iter=3, random_state=0, n_jobs=4).fit(table(9000, 4)),
        lambda: m.KernelPCA(2, random_state=0).fit(X[:100]).transform(X[:10]),
    )
    for kind in kinds:
        for _ in range(3):
            kind()
    marks = []
    for i in range(options.fits):
        kinds[i % len(kinds)]()
        if i % max(1, options.fits // 5) == 0 or i == options.fits - 1:
            gc.collect()
            marks.append(
                (
                    i,
                    round(resident_megabytes(), 1),
                    threading.active_count(),
                    len(os.listdir("/proc/self/fd")),
                )
            )
    print("fits, RSS MB, threads, open files:", marks)


def _in_child(queue: Any) -> Any:
    import mixfold as m

    queue.put(
        fingerprint(m.GaussianMixture(3, max_iter=10, random_state=0, n_jobs=2).fit(table(30000)))
    )


def fork(_: Any) -> Any:
    """Fits after a fork of a process that has fitted with threads; by multiprocessing and joblib."""  # noqa: E501
    from joblib import Parallel, delayed

    import mixfold as m

    here = fingerprint(
        m.GaussianMixture(3, max_iter=10, random_state=0, n_jobs=2).fit(table(30000))
    )
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=_in_child, args=(queue,))
        process.start()
        try:
            same = queue.get(timeout=120) == here
            print(f"multiprocessing {method}: {'same bits' if same else 'OTHER'}")
        except Exception as error:
            print(
                f"multiprocessing {method}: BAD {type(error).__name__} (hang or crash), alive {process.is_alive()}, exit {process.exitcode}"  # noqa: E501
            )
        process.join(5)
        if process.is_alive():
            process.kill()
    model = m.GaussianMixture(3, max_iter=10, random_state=0)
    for backend in ("loky", "multiprocessing", "threading"):
        found = Parallel(2, backend=backend)(delayed(_fitted)(model, table(8000)) for _ in range(3))
        print(
            f"joblib {backend}: {len(set(found))} distinct results, local one among them: {_fitted(model, table(8000)) in found}"  # noqa: E501
        )
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(
        m.GaussianMixture(random_state=0, max_iter=10), {"n_components": [1, 2]}, n_jobs=2, cv=2
    ).fit(table(2000))
    print("GridSearchCV(n_jobs=2):", search.best_params_)
    reader = m.GaussianMixture(3, max_iter=3, random_state=0, n_jobs=2)
    pid = os.fork()  # inside a process whose pool of threads is alive
    if pid == 0:
        try:
            reader.fit(table(30000))
            os._exit(0)
        except BaseException:
            os._exit(1)
    began = time.monotonic()
    while time.monotonic() - began < 60:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            print("os.fork with the estimator made before:", os.WEXITSTATUS(status) == 0)
            break
        time.sleep(0.1)
    else:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        print("os.fork: BAD, hangs")


def _fitted(model: Any, X: Any) -> Any:
    from sklearn.base import clone

    return fingerprint(clone(model).fit(X))


def thread_counts(_: Any) -> Any:
    """The same bits for any number of threads, of the library's and of BLAS'."""
    code = (
        "import sys, json, warnings; warnings.simplefilter('ignore')\nfrom load import *\nimport mixfold as m\n"  # noqa: E501
        "out = {}\nX = table(40000, 6)\nH = X.copy(); H[np.random.default_rng(1).random(X.shape) < .05] = np.nan\n"  # noqa: E501
        "for j in (1, 2, 3, 8):\n"
        "    out[f'gm {j}'] = fingerprint(m.GaussianMixture(4, max_iter=15, random_state=0, n_jobs=j).fit(X))\n"  # noqa: E501
        "    out[f'km {j}'] = fingerprint(m.KMeans(8, max_iter=15, random_state=0, n_jobs=j).fit(X))\n"  # noqa: E501
        "    out[f'mfa {j}'] = fingerprint(m.MixtureOfFactorAnalyzers(3, 2, max_iter=8, random_state=0, n_jobs=j).fit(H))\n"  # noqa: E501
        "    out[f'vb {j}'] = fingerprint(m.BayesianGaussianMixture(4, max_iter=8, random_state=0, n_jobs=j).fit(X))\n"  # noqa: E501
        "    out[f'kpca {j}'] = fingerprint(m.KernelPCA(3, random_state=0, n_jobs=j).fit(X[:1500]))\n"  # noqa: E501
        "    out[f'ppca {j}'] = fingerprint(m.PPCA(3, random_state=0, n_jobs=j).fit(X))\n"
        "    out[f'mf {j}'] = fingerprint(m.MatrixFactorization(3, max_iter=4, random_state=0, n_jobs=j).fit(X[:4000]))\n"  # noqa: E501
        "print(json.dumps(out))\n"
    )
    import json

    results = {}
    for blas in ("1", "2", "4"):
        done = subprocess.run(
            [python(), "-c", code],
            capture_output=True,
            text=True,
            env=child_environment(OMP_NUM_THREADS=blas, OPENBLAS_NUM_THREADS=blas),
        )
        if done.returncode:
            print(done.stderr[-500:])
            continue
        for key, value in json.loads(done.stdout.splitlines()[-1]).items():
            results.setdefault(key.split()[0], {}).setdefault(value, []).append(
                f"{key.split()[1]}/{blas}"
            )
    for kind, found in results.items():
        print(
            f"{kind}: {len(found)} distinct results over n_jobs/BLAS threads {'' if len(found) == 1 else found}"  # noqa: E501
        )


def errstate(_: Any) -> Any:
    """numpy's error state as the user has set it: all='raise' must not break a fit of plain data."""  # noqa: E501
    made = estimators()
    bad = []
    for name, fit in made.items():
        before = np.geterr()
        with np.errstate(all="raise"):
            try:
                fit()
            except FloatingPointError as error:
                stack = [
                    f
                    for f in traceback.extract_tb(error.__traceback__)
                    if is_of_the_library(f.filename)
                ]
                bad.append(
                    (
                        name,
                        str(error),
                        f"{stack[-1].filename.rpartition('mixfold/')[2]}:{stack[-1].lineno}:{stack[-1].name}",
                    )
                )
        if np.geterr() != before:
            bad.append((name, "state changed"))
    print(f"np.errstate(all='raise'): {len(bad)} of {len(made)} fits fail {bad}")
    bad = []
    for name, fit in made.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            try:
                fit()
            except RuntimeWarning as error:
                bad.append((name, str(error)))
    print(f"RuntimeWarning as error: {len(bad)} of {len(made)} fits fail {bad}")


def large(options: Any) -> Any:
    """Memory above the data for a large float32 table."""
    import mixfold as m

    n = options.rows
    X = np.random.default_rng(0).standard_normal((n, 4), dtype=np.float32)
    X[: n // 2] += 4
    base = resident_megabytes()
    print(f"data {X.nbytes / 1e6:.0f} MB, process {base:.0f} MB")
    for name, fit in (
        ("GaussianMixture(3)", lambda: m.GaussianMixture(3, max_iter=3, random_state=0).fit(X)),
        ("KMeans(5)", lambda: m.KMeans(5, max_iter=3, random_state=0).fit(X)),
        ("PPCA(2)", lambda: m.PPCA(2, random_state=0).fit(X)),
        (
            "predict",
            lambda: m.GaussianMixture(3, max_iter=1, random_state=0).fit(X[:50000]).predict(X),
        ),
    ):
        peak, stop = [resident_megabytes()], threading.Event()

        def watch(peak: Any = peak, stop: Any = stop) -> Any:
            while not stop.wait(0.02):
                peak[0] = max(peak[0], resident_megabytes())

        thread = threading.Thread(target=watch)
        thread.start()
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit()
        stop.set()
        thread.join()
        print(
            f"{name}: peak +{peak[0] - base:.0f} MB, {time.process_time() - began:.1f} s CPU",
            flush=True,
        )


def cache(_: Any) -> Any:
    """Processes that compile into one cache folder at once, and a cache that is damaged or unwritable."""  # noqa: E501
    folder = scratch_folder("cold") / "numba"
    subprocess.run(["rm", "-rf", str(folder)])
    folder.mkdir(parents=True)
    code = (
        "import warnings; warnings.simplefilter('ignore')\nfrom load import *\nimport mixfold as m\n"  # noqa: E501
        "print(fingerprint(m.GaussianMixture(2, max_iter=3, random_state=0).fit(table(500))))"
    )
    begun = [
        subprocess.Popen(
            [python(), "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=child_environment(NUMBA_CACHE_DIR=str(folder)),
        )
        for _ in range(3)
    ]
    ends = [p.communicate(timeout=900) for p in begun]
    print(
        "3 processes, one cold cache:",
        sorted({out.strip() for out, _ in ends}),
        [p.returncode for p in begun],
        [e[-150:] for _, e in ends if e],
    )
    files = [p for p in folder.rglob("*") if p.is_file()]
    for path in files:
        if path.suffix == ".nbc":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    done = subprocess.run(
        [python(), "-c", code],
        capture_output=True,
        text=True,
        env=child_environment(NUMBA_CACHE_DIR=str(folder)),
        timeout=900,
    )
    print(
        "truncated code in the cache:",
        done.returncode,
        done.stdout.strip(),
        done.stderr.strip()[-200:],
    )
    for path in files:
        if path.suffix == ".nbi":
            path.write_bytes(b"")
    done = subprocess.run(
        [python(), "-c", code],
        capture_output=True,
        text=True,
        env=child_environment(NUMBA_CACHE_DIR=str(folder)),
        timeout=900,
    )
    print(
        "empty index in the cache:",
        done.returncode,
        done.stdout.strip(),
        done.stderr.strip()[-200:],
    )


COMMANDS = {
    "threads": threads,
    "predict": predict,
    "leak": leak,
    "fork": fork,
    "threads-count": thread_counts,
    "errstate": errstate,
    "large": large,
    "cache": cache,
}


def main() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=list(COMMANDS))
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=10_000_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    COMMANDS[options.what](options)
    print(f"peak {peak_megabytes():.0f} MB")


if __name__ == "__main__":
    sys.exit(main())
