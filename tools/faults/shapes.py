"""Model files whose arrays have other shapes than they should: does a compiled loop read or write outside?

    python -m tools.faults shapes [--only PLSI,LatentDirichletAllocation] [--out shapes.jsonl]

Every array of every model file gets every wrong shape, with a right checksum. Compiled code runs with
NUMBA_BOUNDSCHECK=1 in a cache of its own, so that an access outside an array is an IndexError that says
"index is out of bounds" instead of a corrupted heap. Run python -m tools.faults files --make first.
"""  # noqa: E501

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import os
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from typing import Any

if os.environ.get("NUMBA_BOUNDSCHECK") != "1":  # numba reads it once
    from tools.faults.running import child_environment, scratch_folder

    os.execve(
        sys.executable,
        [sys.executable, "-m", "tools.faults", "shapes", *sys.argv[1:]],
        child_environment(
            NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(scratch_folder("numba-checked"))
        ),
    )

import numpy as np

from tools.faults.files import NUMPY, answers, build, change_array, declared_arrays, has_nan, parse
from tools.faults.running import is_of_the_library, scratch_folder

SHAPES = (
    "fewer rows",
    "more rows",
    "double length",
    "fewer columns",
    "more columns",
    "transposed",
    "flat",
    "empty",
    "extra axis",
    "float32",
    "ints",
)
VALUES = ("negative ints", "big ints", "one huge", "NaN", "negative", "zero", "inf")


def variants(content: Any) -> Any:
    """(what was changed, the bytes)."""
    whole = parse(content)
    for i in range(len(declared_arrays(whole[1], whole[2]))):
        for how in SHAPES + VALUES:
            metadata, document, tensors = copy.deepcopy(whole)
            _, node = declared_arrays(document, tensors)[i]
            name = node["$array"][0]
            dtype, shape, raw = tensors[name]
            array = np.frombuffer(raw, dtype=NUMPY[dtype]).reshape(shape).copy()
            if how in ("negative ints", "big ints") and array.dtype.kind not in "iu":
                continue
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                changed = np.asarray(change_array(np.random.default_rng(0), array, how))
            code = next((k for k, v in NUMPY.items() if np.dtype(v) == changed.dtype), None)
            if code is None or (
                changed.shape == array.shape
                and changed.tobytes() == array.tobytes()
                and changed.dtype == array.dtype
            ):
                continue
            changed = np.ascontiguousarray(changed).reshape(changed.shape)
            tensors[name] = [code, list(changed.shape), changed.tobytes()]
            node["$array"][1], node["$array"][2] = changed.dtype.str[1:], list(changed.shape)
            yield (
                f"{name} {how} {tuple(shape)}->{changed.shape}",
                build(metadata, document, tensors),
            )


def place(error: Any) -> Any:
    ours = [f for f in traceback.extract_tb(error.__traceback__) if is_of_the_library(f.filename)]
    return (
        f"{ours[-1].filename.rpartition('mixfold/')[2]}:{ours[-1].lineno}:{ours[-1].name}"
        if ours
        else "?"
    )


def main() -> Any:
    import mixfold
    from mixfold import store

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="")
    parser.add_argument("--out", default=str(scratch_folder("hostile") / "shapes.jsonl"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    home = scratch_folder("hostile")
    index = json.loads((home / "index.json").read_text())
    names = [
        n
        for n in index
        if not n.startswith("checkpoint") and (not options.only or n in options.only.split(","))
    ]
    os.chdir(tempfile.mkdtemp(prefix="shapes", dir=home))
    kinds, outside, out = Counter(), Counter(), open(options.out, "a")  # noqa: SIM115
    for name in names:
        X = np.load(index[name].replace(".mixfold", ".npy"))
        here = Counter()
        with open(index[name], "rb") as file:
            content = file.read()
        for what, changed in variants(content):
            with open("m.mixfold", "wb") as file:
                file.write(changed)
            try:
                model = mixfold.load("m.mixfold")
            except store.ModelFileError:
                here["refused"] += 1
                continue
            except Exception as error:
                here["load crash"] += 1
                out.write(
                    json.dumps(
                        {
                            "kind": "load crash",
                            "name": name,
                            "what": what,
                            "error": f"{type(error).__name__}: {error}"[:200],
                            "place": place(error),
                        }
                    )
                    + "\n"
                )
                continue
            end = "accepted"
            for asked, call in answers(model, X):
                try:
                    with contextlib.redirect_stdout(io.StringIO()):
                        if has_nan(call()) and end == "accepted":
                            end = "NaN"
                except IndexError as error:
                    if "index is out of bounds" in str(error):
                        end = "OUTSIDE"
                        outside[f"{name} {asked} @ {place(error)}"] += 1
                        out.write(
                            json.dumps(
                                {
                                    "kind": "outside",
                                    "name": name,
                                    "what": what,
                                    "asked": asked,
                                    "place": place(error),
                                }
                            )
                            + "\n"
                        )
                        break
                    end = "late crash"
                except (ValueError, TypeError):
                    end = "late error" if end != "late crash" else end
                except Exception:
                    end = "late crash"
            here[end] += 1
            if end == "NaN":
                out.write(json.dumps({"kind": "NaN", "name": name, "what": what}) + "\n")
        kinds += here
        out.flush()
        print(f"{name}: {dict(here)}", flush=True)
    print("\nall:", dict(kinds), "\n\noutside an array:")
    for what, n in outside.most_common():
        print(f"{n:5d}  {what}")


if __name__ == "__main__":
    main()
