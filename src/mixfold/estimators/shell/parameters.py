"""Parameters that many estimators share: type, default, rule and the beginning of their text.

An estimator that has such a parameter is checked by its rule, unless ``_constraints`` of its class
has another one.
Each estimator writes out its signature and its docstring, for ``help``, editors, type checkers and
scikit-learn. ``tools/shared_parameters.py`` compares them with the table here: the text of a
parameter begins with that of the table, and what is special in an estimator follows in sentences
of its own. ``n_components`` is not in the table: clusters, axes, topics and hidden units have no
more than the name in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.estimators.shell import constraints as rule

# a default that each estimator chooses for itself
DIFFERS: Final = "differs"


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a parameter is in all estimators that have it.

    Attributes
    ----------
    name : str
    kind : str or None
        Its type as a docstring says it, without the default; None if it differs.
    text : str
        Whole sentences with which its description begins.
    rules : tuple of Rule or None
        What its value may be (any of them); None if that differs, or if no rule here checks it.
    default : object or DIFFERS
    """

    name: str
    kind: str | None
    text: str
    rules: tuple[rule.Rule, ...] | None = None
    default: Any = DIFFERS


_TABLE = (
    # ------------------------------------------------ how far a fit goes
    Parameter(
        "tol",
        "float",
        "The fit stops when the total gain still to come, extrapolated from the recent rate of "
        "convergence, is below ``tol``.",
        (rule.number(0),),
    ),
    Parameter("max_iter", "int", "Largest number of iterations.", (rule.integer(0),)),
    Parameter(
        "time_budget",
        "float",
        "Seconds after which the best result so far is returned.",
        (rule.nothing(), rule.number(0, open_end=True)),
        None,
    ),
    Parameter(
        "checkpoint",
        "path",
        "File to which a long fit writes its state now and then; the same call made again after "
        "an interruption goes on from it and ends in the same result.",
        (rule.nothing(), rule.path()),
        None,
    ),
    # ------------------------------------------------ where it begins
    Parameter(
        "n_init",
        "int",
        "Starts that are followed to the end; the best is kept.",
        (rule.integer(1),),
        1,
    ),
    Parameter(
        "merge_starts",
        "bool",
        "With ``n_init`` above 1: make one more fit of the components of all starts, of which as "
        "many are kept as the mixture has, and keep it if it is better than the best of them.",
        (rule.boolean(),),
        False,
    ),
    Parameter("init_params", None, "How rows are first shared among the components."),
    Parameter(
        "warm_start",
        "bool",
        "Start the next fit from the last one.",
        (rule.boolean(),),
        False,
    ),
    Parameter(
        "random_state",
        "int, RandomState, Generator or None",
        "Seed; the same seed gives the same result for any number of threads or workers.",
        default=None,
    ),
    # ------------------------------------------------ how it is computed
    Parameter(
        "acceleration",
        None,
        "Extrapolation between steps, kept only where the objective rises; None makes plain steps.",
        (rule.nothing(), rule.one_of(["auto", *ACCELERATIONS])),
        "auto",
    ),
    Parameter("batch_size", "int", "Rows between two updates of the parameters."),
    Parameter(
        "executor",
        "{'threads', 'dask'}, a distributed.Client or an Executor",
        "Where the rows are visited: by threads of this process or by the workers of a Dask "
        "cluster.",
        default="threads",
    ),
    Parameter("n_jobs", "int", "Number of threads; None means all cores.", default=None),
    Parameter(
        "verbose",
        "int",
        "1 shows progress (a status line in a terminal, some lines in a log), 2 shows every "
        "iteration.",
        (rule.integer(0), rule.boolean()),
        0,
    ),
    Parameter(
        "verbose_interval",
        "int",
        "Iterations between two lines of a log.",
        (rule.integer(1),),
        10,
    ),
    # ------------------------------------------------ models
    Parameter(
        "noise_floor",
        "float",
        "Smallest noise variance, relative to the variance of the data.",
        (rule.number(0),),
    ),
    Parameter(
        "loadings_prior",
        "float, 'ard' or None",
        "Normal prior of the loadings, whose estimates are then those of the highest posterior "
        "density (MAP). A number is its precision, for columns measured in their spreads. 'ard' "
        "(automatic relevance determination) has a precision for each factor, integrated out: "
        "factors that the rows do not need vanish.",
        (rule.nothing(), rule.one_of(["ard"]), rule.number(0, open_end=True)),
        None,
    ),
    Parameter(
        "noise_prior",
        "tuple (rows, variance) or None",
        "Gamma prior of the precision of the noise: as much as so many rows with noise of this "
        "variance would say, in units of the data.",
        (rule.nothing(), rule.pair_of_positive()),
        None,
    ),
    Parameter(
        "gamma",
        "float, 'scale' or None",
        "Coefficient of the kernels 'rbf', 'laplacian' and 'poly'; None is 1 / n_features, 'scale' "
        "divides that by the variance of all entries.",
        (rule.nothing(), rule.one_of(["scale"]), rule.number(0, open_end=True)),
        None,
    ),
    # ------------------------------------------------ Bayesian mixtures
    Parameter(
        "learn_prior",
        "bool",
        "Let the prior of the components follow them (type-II maximum likelihood), once they have "
        "been fitted under the prior that is given; the bound is never below that fit's.",
        (rule.boolean(),),
        False,
    ),
    Parameter(
        "merge_split",
        "bool",
        "Try to merge components that share rows and to split others; keep what raises the bound.",
        (rule.boolean(),),
    ),
    Parameter(
        "total_weight",
        "float",
        "For ``partial_fit``: how many rows the stream stands for; None means those seen so far.",
        (rule.nothing(), rule.number(0, open_end=True)),
        None,
    ),
    Parameter("n_chains", "int", "Chains of 'gibbs' and 'collapsed'.", (rule.integer(1),), 4),
    Parameter("n_draws", "int", "Draws kept per chain.", (rule.integer(1),), 500),
    Parameter("burn_in", "int", "Sweeps before the first draw.", (rule.integer(0),), 500),
    Parameter("thin", "int", "Sweeps per draw.", (rule.integer(1),), 1),
)
SHARED: dict[str, Parameter] = {parameter.name: parameter for parameter in _TABLE}

_ARRAY = "array-like of shape (n_samples,) or str, optional"
_TABLE_OF_FIT = (
    Parameter(
        "sample_weight",
        _ARRAY,
        "Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also the "
        "name of a column, which is then not a feature.",
        default=None,
    ),
    Parameter(
        "component_labels",
        _ARRAY,
        "The component of each row, 0 to n_components - 1, or -1 where it is unknown.",
        default=None,
    ),
)
# parameters of ``fit``
SHARED_OF_FIT: dict[str, Parameter] = {parameter.name: parameter for parameter in _TABLE_OF_FIT}


def rules_of(*names: str) -> dict[str, tuple[rule.Rule, ...]]:
    """The rules of shared parameters, for the ``_constraints`` of an estimator."""
    found = {}
    for name in names:
        rules = SHARED[name].rules
        if rules is None:
            raise ValueError(f"the table of shared parameters has no rule for {name!r}")
        found[name] = rules
    return found
