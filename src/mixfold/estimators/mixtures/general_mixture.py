"""Mixture: any family of components, any prior of the weights, any inference."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Event, Pilot, Source
from mixfold.engine.chain import Chain, Sweeps
from mixfold.engine.loop import Fit, Plan
from mixfold.engine.random import RowKeys
from mixfold.engine.state import Task
from mixfold.estimators.mixtures.bayes import BayesEstimator, as_dtype
from mixfold.estimators.mixtures.category_codes import (
    count_codes,
    counted_columns,
    extend_maxima,
    find_codes,
    occurring_codes,
    warn_about_rare_categories,
)
from mixfold.estimators.mixtures.chains import (
    check_unit_weights,
    find_agreed_partition,
    keep_known_numbers,
    posterior_given_labels,
    run_chains,
    thin_draws,
)
from mixfold.estimators.mixtures.family_choice import (
    check_inference,
    describe_parts,
    drop_empty_parts,
    keep_columns,
    make_family,
    storable_parameters,
    takes_missing_and_sparse,
)
from mixfold.estimators.mixtures.mixture import CANDIDATES
from mixfold.estimators.mixtures.set_aside import (
    gaussian_columns,
    set_aside_columns,
    tell_of_columns,
)
from mixfold.estimators.mixtures.weights import LEGAL, mixing_of, name_weights
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import warn
from mixfold.estimators.shell.effective_rows import warn_about_evidence
from mixfold.estimators.shell.fitting import (
    Survey,
    acceleration_named,
    check_enough_rows,
    check_room,
    checkpoint_of,
    publish_convergence,
    reorder_components,
    run_fit,
    survey_rows,
    warn_about_empty_rows,
    warn_about_fit,
)
from mixfold.estimators.shell.input_rows import column_positions
from mixfold.estimators.shell.units import warn_if_spherical
from mixfold.families.component import ComponentFamily
from mixfold.math.chains import summary
from mixfold.math.partitions import similarity
from mixfold.mixing.protocol import Mixing
from mixfold.models.mixtures.bayes_mixture import TRACES, BayesMixture, BayesParams
from mixfold.models.mixtures.inference import INFERENCES
from mixfold.models.mixtures.mixture import Mixture as MixtureModel
from mixfold.models.mixtures.mixture import MixtureReading
from mixfold.models.mixtures.remaining_columns import MixtureOfRemainingColumns
from mixfold.models.mixtures.starts import STARTS
from mixfold.schema import Schema

# splits and mergers that a sweep of the collapsed sampler proposes
PROPOSALS = 1
# posteriors that densities are averaged over, at most
_AVERAGED = 50
# what only chains leave, and what they do not
_OF_CHAINS = ("labels_", "n_clusters_", "traces_", "diagnostics_", "_draws", "_label_draws")
_NOT_OF_CHAINS = (
    "evidence_bound_", "effective_components_trace_", "n_passes_", "_schedule", "_climb"
)  # fmt: skip
# attributes that some mixtures have and others have not; families publish more
_NOT_OF_ALL = (
    "parameters_", "counts_", "active_", "effective_components_", "alpha_", "stick_order_",
    "prior_",
)  # fmt: skip


class GeneralMixture(BayesEstimator):
    """What :class:`Mixture` and its presets share; subclasses say which family is meant."""

    _constraints: ClassVar[rule.Constraints] = {
        "n_components": (rule.integer(1),),
        "inference": (rule.one_of(LEGAL),),
        "alpha": (rule.number(0, open_end=True), rule.one_of(["learn"])),
        "init_params": (rule.one_of(["auto", *STARTS]),),
        "batch_size": (rule.nothing(), rule.integer(1)),
    }  # fmt: skip
    _shape_names: ClassVar[str] = "n_components, family or inference"
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_total", "converged_", "stop_reason_", "n_iter_", "n_passes_", "lower_bound_",
        "lower_bounds_", "effective_components_trace_", "events_", "evidence_bound_", "_dtype",
        "_stream", "_schedule",
        "_labelled", "_maxima", "_occurring", "_only", "_dependent", "labels_", "n_clusters_",
        "traces_", "_draws", "_label_draws",
    )  # fmt: skip

    @abstractmethod
    def _family_setting(self) -> Any:
        """The family as the user names it."""

    # ------------------------------------------------ fitting

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            Rows are samples, columns features; NaN or null marks a missing entry.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature.
        component_labels : array-like of shape (n_samples,) or str, optional
            The component of each row, 0 to n_components - 1, or -1 where it is unknown.

        Returns
        -------
        self
        """
        self._check_parameters()
        source = self._open_rows(X, sample_weight, component_labels)
        if self._samples():
            self._fit_chains(source)
            self._warn_about_chains()
        else:
            result = self._fit_rows(source)
            warn_about_fit(result, self.max_iter)
        return self

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Self:
        """Learn from one more batch (stepwise EM); the first one makes the start.

        Parameters are as in ``fit``. Batches may have any size after the first, which needs at
        least n_components rows; make it a typical one. After ``fit`` a new stream begins.
        """
        self._check_parameters()
        if self._samples():
            raise ValueError(
                f"inference={self.inference!r} visits all rows again and again and cannot learn "
                "from a stream; use inference='vb' for partial_fit"
            )
        return super().partial_fit(X, y, sample_weight, component_labels)

    def _samples(self) -> bool:
        """Whether the fit draws chains instead of climbing an objective."""
        return self.inference in ("gibbs", "collapsed")

    def _look_at_rows(
        self, source: Source, first_batch: bool = False
    ) -> tuple[Survey, MixtureModel]:
        """Survey the rows, check them, and make the model with its prior."""
        survey = survey_rows(self, source, self.n_components)
        self._labelled = survey.pilot.block.y is not None
        # categories are counted by their codes
        self._maxima = extend_maxima(survey.pilot.maximum, self._codes_elsewhere)
        self._occurring: tuple[Array, ...] | None = None
        self._only: Array | None = None
        model = self._model(source.n_features)
        if not model.has_prior:  # with priors there may be more components than rows
            check_enough_rows(survey.pilot.total_rows, self.n_components)
        check_room(survey.pilot.total_rows, self.n_components)
        gaussian = gaussian_columns(self._family(source.n_features), source.n_features)
        kept = first_batch or model.has_prior or not gaussian.size
        set_aside_columns(self, survey, gaussian, first_batch=kept)
        model = self._model(source.n_features)
        if not first_batch:
            warn_if_spherical(self, survey.pilot)
            if model.has_prior:
                warn_about_evidence(f"inference={self.inference!r}", survey.pilot)
        self._check_entries(model.row_family, survey.executor, source)
        names = getattr(self, "feature_names_in_", None)
        chosen = make_family(self._family_setting(), self._options(), names, source.n_features)
        if not first_batch:  # codes that a later batch may have are not absent
            codes = count_codes(counted_columns(chosen), survey, self._maxima)
            warn_about_rare_categories(codes, names)
            self._occurring = occurring_codes(codes, self._codes_elsewhere)
            self._only = _only_values(survey.pilot, self._codes_elsewhere)
            model = model if codes is None else self._model(source.n_features)
        keys = RowKeys(survey.seed)
        return survey, model.with_prior(source, survey.executor, survey.pilot, keys)

    def _note_codes(self, source: Source, earlier: Sequence[Any]) -> None:
        names = None if source.feature_names is None else np.array(source.feature_names)
        chosen = make_family(self._family_setting(), self._options(), names, source.n_features)
        setting = self._family_setting()
        alike = [one for one in earlier if isinstance(one, type(self))]
        maxima = [one._maxima for one in alike if one._family_setting() == setting]
        self._codes_elsewhere = find_codes(counted_columns(chosen), source, maxima)

    def _fit_rows(self, source: Source, first_batch: bool = False) -> Fit:
        """Fit by EM or variational Bayes and publish; for ``fit`` and ``partial_fit``."""
        survey, model = self._look_at_rows(source, first_batch)
        several = self._start_name() == "kmeans" and self.n_components > 1 and model.given.free
        movable = model.has_prior and self.merge_split and not (self._labelled or first_batch)
        accelerated = model.can_extrapolate
        plan = Plan(
            tol=self.tol,
            max_iter=self._most_steps(first_batch),
            n_init=self.n_init,
            merge_starts=self.merge_starts,
            n_candidates=CANDIDATES if several else 1,
            acceleration=acceleration_named(self.acceleration) if accelerated else None,
            time_budget=self.time_budget,
            batch_size=None if first_batch else self.batch_size,
            moves=2 * self.n_components if movable else 0,
            seed=survey.seed,
        )
        result = run_fit(self, model, survey, plan, self._warm_start(model, survey))

        result = tell_of_columns(self, result)
        if not (self._labelled or self.warm_start or first_batch):
            by_weight = np.argsort(-result.params.weights, kind="stable")
            result = reorder_components(model, result, by_weight)
        for name in _OF_CHAINS:
            self.__dict__.pop(name, None)
        self._store_density_fit(result, survey)
        self._publish_params()
        publish_convergence(self, result)
        warn_about_empty_rows(result)
        if self.inference == "vb":
            self.evidence_bound_ = float(result.objective)
        return result

    def _fit_chains(self, source: Source) -> None:
        """Fit by sampling: run the chains, and publish what they agree on."""
        survey, model = self._look_at_rows(source)
        check_unit_weights(self.inference, survey.executor, source)
        task = Task(model, source, survey.executor, survey.pilot, survey.seed)
        chains = run_chains(
            task,
            Sweeps(self.n_draws, self.burn_in, self.thin),
            self.n_chains,
            collapsed=self.inference == "collapsed",
            process=self._weights_name() == "stick-breaking",
            proposals=PROPOSALS if self.merge_split else 0,
            time_budget=self.time_budget,
            verbose=(int(self.verbose), self.verbose_interval),
            checkpoint=checkpoint_of(self),
        )

        for name in _NOT_OF_CHAINS:
            self.__dict__.pop(name, None)
        self._label_draws = np.concatenate([chain.labels for chain in chains])
        self.labels_ = find_agreed_partition(self._label_draws, survey.seed)
        if self._labelled:
            self.labels_ = keep_known_numbers(self.labels_, survey.executor, source)
        self._draws = thin_draws([p for chain in chains for p in chain.params], _AVERAGED)
        self._params = posterior_given_labels(task, self.labels_, chains)
        self._kept_kind = self._kind()
        self._dtype, self._stream = source.dtype.name, (survey.seed, 0)
        self._publish_chains(chains)
        self._publish_params()

    def _publish_chains(self, chains: list[Chain]) -> None:
        """What the chains say about themselves."""
        shortest = min(len(chain.traces) for chain in chains)
        traces = np.stack([chain.traces[:shortest] for chain in chains])
        known = [i for i in range(len(TRACES)) if not np.isnan(traces[..., i]).any()]
        self.traces_ = {TRACES[i]: traces[..., i] for i in known}
        self.diagnostics_ = {name: summary(draws) for name, draws in self.traces_.items()}
        self.converged_ = all(found.reliable for found in self.diagnostics_.values())
        self.n_clusters_ = len(np.unique(self.labels_))
        self.n_iter_ = min(chain.n_sweeps for chain in chains)
        reasons = {chain.reason for chain in chains} - {"done"}
        self.stop_reason_ = reasons.pop() if reasons else "done"
        self.events_: list[Event] = []
        self.lower_bounds_: list[float] = []
        self._total = None
        # rows without weight or entries are in no component
        self.lower_bound_ = float(traces[..., 0].mean()) / float(self._params.counts.sum())

    def _warn_about_chains(self) -> None:
        """Warn of chains that were cut or have not mixed."""
        if self.stop_reason_ != "done":
            budget = self.stop_reason_ == "time_budget"
            what = "time_budget was used up" if budget else "the fit was interrupted"
            wanted = Sweeps(self.n_draws, self.burn_in, self.thin).n_sweeps
            warn(
                f"{what} after {self.n_iter_} of {wanted} sweeps of a chain; the draws so far are "
                "kept",
                ConvergenceWarning,
            )
        poor = [
            f"{name} (R-hat {d.r_hat:.2f}, effective draws {d.ess:.0f})"
            for name, d in self.diagnostics_.items()
            if not d.reliable
        ]
        if poor:
            warn(
                f"the chains have not mixed: {', '.join(poor)}. Raise burn_in and n_draws; "
                "diagnostics_ and traces_ tell more",
                ConvergenceWarning,
            )

    # ------------------------------------------------ the model

    def _weights_name(self) -> str:
        """Which prior of the weights is meant."""
        return name_weights(self.weights, self.inference)

    def _mixing(self) -> Mixing[Any]:
        return mixing_of(self.weights, self.alpha, self.inference)

    def _options(self) -> dict[str, Any]:
        """Settings of the family and of its prior, together."""
        options = dict(self.family_options or {})
        prior = {} if self.prior in (None, "default") else dict(self.prior)
        if not isinstance(self._family_setting(), Mapping):
            return {**options, **prior}
        return {n: {**options.get(n, {}), **prior.get(n, {})} for n in {*options, *prior}}

    def _family(self, n_features: int) -> ComponentFamily:
        names = getattr(self, "feature_names_in_", None)
        family = make_family(self._family_setting(), self._options(), names, n_features)
        maxima = getattr(self, "_maxima", None)
        if maxima is None:
            return family
        return family.with_maxima(maxima, getattr(self, "_occurring", None))

    def _model(self, n_features: int) -> MixtureModel:
        family, mixing = self._family(n_features), self._mixing()
        start = STARTS[self._start_name()]
        if _has_no_priors(self.weights, self.inference, self.prior):
            columns = self._dependent
            if columns is None:
                return MixtureModel(self.n_components, family, mixing, start=start)
            rest = family.for_columns(columns.kept, n_features)
            return MixtureOfRemainingColumns(
                self.n_components, rest, mixing, start=start, columns=columns, whole=family
            )
        check_inference(family, self.inference)
        inference = INFERENCES["gibbs" if self.inference == "collapsed" else self.inference]
        return BayesMixture(
            self.n_components,
            family,
            mixing,
            start=start,
            inference=inference,
            learn_prior=self.learn_prior,
        )

    def _start_name(self) -> str:
        if self.init_params != "auto":
            return str(self.init_params)
        learned = self._weights_name() in ("dirichlet", "stick-breaking")
        return "random" if learned and self.inference == "vb" else "kmeans"

    def _n_parameters(self) -> int:
        """Without those of columns that are zero throughout: see ``n_settled``."""
        found, only = super()._n_parameters(), getattr(self, "_only", None)
        if only is None:
            return found
        model = self._model(self.n_features_in_).only_used(self._params)
        return found - model.row_family.n_settled(model.n_components, only)

    def _kind(self) -> str:
        family = self._family(self.n_features_in_)
        settings = (
            self._family_setting() if isinstance(self._family_setting(), ComponentFamily) else None
        )
        return repr((family.key, settings or self._given_options(), self._weights_name()))

    def _given_options(self) -> Any:
        """Settings of families, as a user could give them."""
        return self.family_options

    def _publish_params(self) -> None:
        for name in (*_NOT_OF_ALL, *getattr(self, "_of_family", ())):
            self.__dict__.pop(name, None)  # an earlier fit may have been of another kind
        super()._publish_params()
        model = self._model(self.n_features_in_)
        components = model.point_components(self._params)
        self._of_family = tuple(f"{name}_" for name in model.row_family.describe(components))
        parts = describe_parts(model.row_family, components)
        if parts is not None:
            self.parameters_ = as_dtype(parts, self._dtype)
        if isinstance(model, BayesMixture) and self._params.prior is not None:
            self.prior_ = model.conjugate.describe_prior(self._params.prior, components.frame)

    def _for_columns(self, rest: Array) -> Self:
        """Without priors: conditionals of the point estimate have no posterior of their own."""
        names = getattr(self, "feature_names_in_", None)
        chosen, options = keep_columns(
            self._family_setting(), self.family_options, names, rest, self.n_features_in_
        )
        settings = {
            name: getattr(self, name)
            for name in ("n_components", "random_state", "executor", "n_jobs")
        }
        other = type(self)(**settings, family_options=options)._with_family(chosen)
        other._maxima, other._labelled = self._maxima[rest], False
        codes = getattr(self, "_occurring", None)
        other._occurring = None if codes is None else tuple(codes[d] for d in rest)
        only = getattr(self, "_only", None)
        other._only = None if only is None else only[rest]
        return other

    def _for_columns_of(self, family: ComponentFamily, rest: Array) -> Any:
        other = self._for_columns(rest)
        if type(other) is Mixture:
            other.set_params(family=family, family_options=None)
        return other

    def _with_family(self, chosen: Any) -> Self:
        """The same estimator of another family; a preset has but one."""
        return self

    def _adopt_params(self, params: Any) -> Any:
        return replace(params, components=drop_empty_parts(params.components))

    # ------------------------------------------------ predictions

    def _reading(self) -> tuple[MixtureModel, MixtureReading]:
        if not self._samples():
            return super()._reading()
        check_is_fitted(self)
        return self._model(self.n_features_in_).prepare_point(self._params)

    def _posteriors(self) -> tuple[BayesParams, ...]:
        return self._draws if self._samples() else super()._posteriors()

    def posterior_similarity(self) -> Array:
        """How often two training rows were in the same component, over the draws: (n, n)."""
        check_is_fitted(self)
        if not self._samples():
            raise ValueError(
                f"inference={self.inference!r} draws no partitions; use 'gibbs' or 'collapsed'"
            )
        return similarity(self._label_draws)

    # ------------------------------------------------ checks and files

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _check_settings_together(self)

    def _plain_parameters(self) -> dict[str, Any]:
        """Refuses to leave out what a file must say to be read again."""
        return storable_parameters(super()._plain_parameters(), self.get_params(deep=False))

    def _declared_shape(self) -> tuple[int, int]:
        if not self._samples():
            return super()._declared_shape()
        return int(self.labels_.max()) + 1, self.n_features_in_

    def _check_state(self) -> None:
        codes = getattr(self, "_occurring", None)
        if codes is not None and (
            len(codes) != self.n_features_in_ or any(np.ndim(one) != 1 for one in codes)
        ):
            raise ValueError("codes that occur are not those of the columns")
        only = getattr(self, "_only", None)
        if only is not None and np.shape(only) != (self.n_features_in_,):
            raise ValueError("values of columns that hold but one are not those of the columns")
        super()._check_state()
        if self._samples():  # not stored: they follow from the traces
            self.diagnostics_ = {name: summary(draws) for name, draws in self.traces_.items()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        missing, sparse = takes_missing_and_sparse(self._family_setting())
        tags.input_tags.allow_nan, tags.input_tags.sparse = missing, sparse
        return tags


def _only_values(pilot: Pilot, elsewhere: tuple[Array, ...] | None) -> Array | None:
    """The value (D,) of each column that holds but one, -1 for others; None if all vary.

    What rows hold ``elsewhere`` is known of codes alone: then all are taken to vary.
    """
    one = pilot.maximum == pilot.minimum
    if elsewhere is not None or not one.any():
        return None
    return np.where(one, pilot.maximum, -1.0)  # no count, and no end of a range


class Mixture(GeneralMixture):
    """Mixture of any components, its parameters and their number learned in any of four ways.

    Each row comes from one of K components of a family:

        pi ~ weights,    theta_k ~ prior,    z ~ pi,    x | z = k ~ family(theta_k)

    Columns may be of different kinds, entries may be missing, rows may weigh, some may have a known
    component, and there may be more rows than memory: X is what :class:`GaussianMixture` takes.

    Parameters
    ----------
    family : str, dict, Schema or family object, default='full'
        Gaussian with covariances 'full', 'tied', 'diag', 'spherical', 'tied-diag',
        'tied-spherical', 'known' or, around a known mean, 'known-mean'; 'bernoulli', 'binomial',
        'poisson', 'negative-binomial', 'exponential', 'gamma', 'gamma-shape' (the shape learned),
        'beta' (shares), 'von-mises' (angles, hours), 'dirichlet' (rows of shares that add to one),
        'wishart' (rows that are covariance matrices), 'multinomial' (a row of counts),
        'categorical' (codes 0, 1, ...). A dict gives each family its columns, by name or
        position: {'full': ['height', 'weight'],
        'poisson': ['visits'], 'bernoulli': ['smokes'], 'categorical': ['region']}; they are
        independent within a component. An object of a family has its settings with it. 'auto' looks
        at the columns of a table or file, whatever they hold (:class:`Schema`), and gives each the
        family of its kind; a Schema says what they are.
    n_components : int, default=1
        Number of components K; with a prior of the weights an upper bound, of which as many are
        used as the data ask for. Where inference='collapsed' has no bound it is the start.
    weights : str or array-like, default='auto'
        'ml': free; 'dirichlet': Dirichlet(alpha / K); 'stick-breaking': a Dirichlet process,
        truncated after K components (not truncated where inference='collapsed'); an array of K
        shares fixes them. 'auto' is 'ml' for EM, 'stick-breaking' for 'collapsed', else
        'dirichlet'.
    inference : {'em', 'vb', 'gibbs', 'collapsed'}, default='em'
        'em': maximum likelihood, or the maximum a posteriori if there is a prior; 'vb':
        variational Bayes; 'gibbs': draws of weights, parameters and assignments in turn;
        'collapsed': draws of assignments alone, the rest integrated out (rows in memory).
    alpha : float or 'learn', default=1.0
        Concentration of the weights: the larger, the more components are used. 'learn' gives it
        a gamma(1, 1) prior. A truncated process with alpha far above n_components leaves nearly
        all to its last component: use 'dirichlet' there, or more components.
    prior : {None, 'default'} or dict, default=None
        Prior of the components. None: none for EM with free or fixed weights, else the default
        of the family, which follows the scale of the data. A dict has settings of the family, such
        as {'precision': 0.1, 'degrees': 5}; for a dict of families one dict for each by its name.
    learn_prior : bool, default=False
        Let the prior of the components follow them (type-II maximum likelihood), once they have
        been fitted under the prior that is given; the bound is never below that fit's. 'gibbs' and
        'collapsed' draw its settings with all else, about the given ones (log-normal, within a
        factor of 7.4 with 95 %; matrices: Wishart); ``prior_`` is then their mean.
    family_options : dict, default=None
        Settings of the family itself, such as {'trials': 10} for 'binomial', {'shape': 2.0} for
        'gamma', {'dispersion': 0.5} for 'negative-binomial' (learned if left out), {'period': 24}
        for 'von-mises' or {'covariance': S} for 'known'; for a dict of families one dict for each.
    tol : float, default=1e-6
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is that of the objective per row.
    max_iter : int, default=1000
        Largest number of iterations. Each start has this limit.
    n_init : int, default=1
        Starts that are followed to the end; the best is kept.
    merge_starts : bool, default=False
        With ``n_init`` above 1: make one more fit of the components of all starts, of which as many
        are kept as the mixture has, and keep it if it is better than the best of them.
    init_params : str, default='auto'
        How rows are first shared among the components. The choices are 'kmeans', 'k-means++',
        'random', 'random_from_data' and 'randconst'; 'auto' is 'random' responsibilities where the
        number of components is learned, else 'kmeans'.
    merge_split : bool, default=True
        Try to merge components that share rows and to split others; keep what raises the bound.
        'collapsed' proposes some in each sweep, so that chains that began in different partitions
        meet; 'gibbs' does not do this.
    batch_size : int, default=None
        Rows between two updates of the parameters. Only 'vb' and MAP have such batches (memoised
        schedule: the bound stays exact); None updates after each pass.
    total_weight : float, default=None
        For ``partial_fit``: how many rows the stream stands for; None means those seen so far. It
        is meant for stochastic variational Bayes.
    n_chains : int, default=4
        Chains of 'gibbs' and 'collapsed'.
    n_draws : int, default=500
        Draws kept per chain.
    burn_in : int, default=500
        Sweeps before the first draw.
    thin : int, default=1
        Sweeps per draw.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    warm_start : bool, default=False
        Start the next fit from the last one.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    acceleration : {'auto', 'quasi-newton', 'squarem'} or None, default='auto'
        Extrapolation between steps, kept only where the objective rises; None makes plain steps.
        Only EM without priors is extrapolated.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited: by threads of this process or by the workers of a Dask cluster.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned.
    checkpoint : path, default=None
        File to which a long fit writes its state now and then; the same call made again after an
        interruption goes on from it and ends in the same result. 'collapsed' writes it between its
        chains only.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Expected weights; with a prior in decreasing order (unless rows have known components).
    means_ : ndarray of shape (n_components, n_features)
        Expected entries. By family also ``covariances_``, ``probabilities_``, ``rates_`` or
        ``dispersions_``; for several families ``parameters_`` has them by name.
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`GaussianMixture`; the objective is the log-likelihood, or the bound of the
        log evidence.
    schema_ : Schema
        With family='auto' or a schema: what the columns are. ``impute`` and ``sample`` then give
        tables with the words, dates and types that came in, and densities are in units of the
        table.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    With a prior there are also ``counts_`` (rows of each component), ``active_`` (more than half a
    row), ``effective_components_`` (and, by 'vb' and MAP, ``effective_components_trace_``: their
    number at each of ``lower_bounds_``), ``alpha_``, ``prior_`` (that of the components, given or
    learned, as a dict that the parameter ``prior`` takes) and, for 'vb', ``evidence_bound_``;
    ``lower_bound_`` is the log posterior for 'em' and the mean log joint of the draws for samplers.
    'stick-breaking' adds ``stick_order_``: the component at each stick, the first one first. The
    bound of the log evidence belongs to that order, components are published by size. Sampling
    leaves ``labels_`` (the partition of the rows that the draws agree on best), ``n_clusters_``,
    ``traces_`` (label-free quantities, chains by sweeps) and ``diagnostics_`` (their R-hat and
    effective sample size).

    References
    ----------
    .. [1] Blei, Jordan. Variational inference for Dirichlet process mixtures. Bayesian Analysis 1,
       2006.
    .. [2] Neal. Markov chain sampling methods for Dirichlet process mixture models. JCGS 9, 2000.
    .. [3] Hughes, Sudderth. Memoized online variational inference for Dirichlet process mixture
       models. NIPS 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import Mixture
    >>> rng = np.random.default_rng(0)
    >>> counts = np.concatenate([rng.poisson(3, (200, 2)), rng.poisson(15, (100, 2))])
    >>> mixture = Mixture("poisson", 10, inference="vb", random_state=0).fit(counts)
    >>> mixture.effective_components_
    2
    >>> mixture.rates_[:2].round(0)
    array([[ 3.,  3.],
           [15., 15.]])
    >>> from mixfold.plots import plot_pairs
    >>> panels = plot_pairs(mixture, counts)
    """

    def __init__(
        self,
        family: Any = "full",
        n_components: int = 1,
        *,
        weights: Any = "auto",
        inference: str = "em",
        alpha: Any = 1.0,
        prior: Any = None,
        learn_prior: bool = False,
        family_options: Any = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        n_init: int = 1,
        merge_starts: bool = False,
        init_params: str = "auto",
        merge_split: bool = True,
        batch_size: int | None = None,
        total_weight: float | None = None,
        n_chains: int = 4,
        n_draws: int = 500,
        burn_in: int = 500,
        thin: int = 1,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        acceleration: str | None = "auto",
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.family = family
        self.n_components = n_components
        self.weights = weights
        self.inference = inference
        self.alpha = alpha
        self.prior = prior
        self.learn_prior = learn_prior
        self.family_options = family_options
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.merge_starts = merge_starts
        self.init_params = init_params
        self.merge_split = merge_split
        self.batch_size = batch_size
        self.total_weight = total_weight
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.thin = thin
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.acceleration = acceleration
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget
        self.checkpoint = checkpoint

    # ------------------------------------------------ tables read through a schema

    _stored: ClassVar[tuple[str, ...]] = (*GeneralMixture._stored, "_schema")
    # the schema of the rows, as the text of its file, if family is 'auto' or a schema
    _schema: str

    @property
    def schema_(self) -> Schema:
        """What the columns of the table are, if ``family`` is 'auto' or a schema."""
        if "_schema" not in vars(self):
            raise AttributeError("schema_: only a fitted mixture with family='auto' has it")
        return Schema.from_text(self._schema)

    @property
    def _reads_words(self) -> bool:
        return isinstance(self.family, Schema) or (
            isinstance(self.family, str) and self.family == "auto"
        )

    def _open(
        self, X: Any, *, reset: bool, weight: Any = None, y: Any = None, min_rows: int = 1
    ) -> Source:
        if reset:
            self.__dict__.pop("_schema", None)
        if self._reads_words:
            if reset:
                self._schema = _schema_for(self.family, X).to_text()
            if not isinstance(X, Source):
                keep = [name for name in (weight, y) if isinstance(name, str)]
                X = self.schema_.encode_table(X, keep)
        return super()._open(X, reset=reset, weight=weight, y=y, min_rows=min_rows)

    def _of_numbers(self) -> Self:
        other = super()._of_numbers()
        if "_schema" in vars(self):
            other.family, other.family_options = self._family_setting(), self._given_options()
            del other._schema
        return other

    def condition(self, columns: Sequence[Any] | Any, values: Any) -> Self:
        if "_schema" not in vars(self):
            return super().condition(columns, values)
        names = self.feature_names_in_[column_positions(self, columns)]
        given = [values] if isinstance(values, str) or np.ndim(values) == 0 else values
        coded = self.schema_.encode_values(dict(zip(names, given, strict=True)))
        return self._of_numbers().condition(columns, coded)

    condition.__doc__ = GeneralMixture.condition.__doc__

    def _fit_rows(self, source: Source, first_batch: bool = False) -> Fit:
        result = super()._fit_rows(source, first_batch)
        if "_schema" in vars(self) and self._total is not None and self.inference == "em":
            schema = self.schema_
            shifts = [(b.weight, schema.log_jacobian(b.X)) for b in source.blocks()]
            shift = sum(float(s.sum() if w is None else w @ s) for w, s in shifts)
            objective, weight, entropy = self._total
            self._total = (objective + shift, weight, entropy)
            self.lower_bound_ += shift / weight
            self.lower_bounds_ = [value + shift / weight for value in self.lower_bounds_]
        return result

    def score_samples(self, X: Any) -> Array:
        """Log density of the observed entries of each row, in the units of the table."""
        found = super().score_samples(X)
        return found + self._log_jacobian(X) if "_schema" in vars(self) else found

    def _totals(self, X: Any, sample_weight: Any = None) -> tuple[float, float, float]:
        total, weight, entropy = super()._totals(X, sample_weight)
        if X is not None and "_schema" in vars(self):
            total += self._sum_log_jacobian(X, sample_weight)
        return total, weight, entropy

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log density per row (per unit of weight), in the units of the table."""
        found = super().score(X, y, sample_weight)
        if X is None or "_schema" not in vars(self):
            return found
        weight = super()._totals(X, sample_weight)[1]
        return found + self._sum_log_jacobian(X, sample_weight) / weight

    def _sum_log_jacobian(self, X: Any, sample_weight: Any) -> float:
        shift = self._log_jacobian(X)
        w = X[sample_weight] if isinstance(sample_weight, str) else sample_weight
        return float(shift.sum() if w is None else np.asarray(w, float) @ shift)

    def _log_jacobian(self, X: Any) -> Array:
        """Of the logarithms that models see of some columns, for each row."""
        schema = self.schema_
        if isinstance(X, Source):  # of numbers already
            return np.concatenate([schema.log_jacobian(block.X) for block in X.blocks()])
        return schema.log_jacobian(schema.encode(X))

    def impute(self, X: Any, method: str = "mean", random_state: Any = None) -> Any:
        found = super().impute(X, method, random_state)
        if "_schema" not in vars(self) or isinstance(X, Source):
            return found
        return self.schema_.decode_rows(found, X)

    impute.__doc__ = GeneralMixture.impute.__doc__

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, Array]:
        found, labels = super().sample(n_samples, random_state)
        return (self.schema_.decode_rows(found) if "_schema" in vars(self) else found), labels

    sample.__doc__ = GeneralMixture.sample.__doc__

    def _family_setting(self) -> Any:
        if "_schema" not in vars(self):
            return self.family
        return self.schema_.families(posterior=not self._is_plain())

    def _is_plain(self) -> bool:
        """Whether the fit maximises the likelihood, for which a family needs no posterior."""
        return self.inference == "em" and self.prior is None

    def _given_options(self) -> Any:
        """Those of the user, and what the columns say."""
        if "_schema" not in vars(self) or not self._is_plain():
            return self.family_options
        options = dict(self.family_options or {})
        said = self.schema_.family_options()
        together = {name: {**own, **options.get(name, {})} for name, own in said.items()}
        return {**options, **together} or None

    def _options(self) -> dict[str, Any]:
        """Those of the user and of the columns, and of the prior."""
        if "_schema" not in vars(self):
            return super()._options()
        options = dict(self._given_options() or {})
        prior = {} if self.prior in (None, "default") else dict(self.prior)
        return {n: {**options.get(n, {}), **prior.get(n, {})} for n in {*options, *prior}}

    def _with_family(self, chosen: Any) -> Self:
        found: Self = self.set_params(family=chosen)
        return found


def _schema_for(family: Any, X: Any) -> Schema:
    """The schema that is given, or that of the table."""
    if isinstance(family, Schema):
        return _check_used(family)
    if isinstance(X, Source):
        raise ValueError(
            "family='auto' looks at the columns of a table or file, and X is a source of numbers; "
            "give the table itself, or family=Schema.infer(table)"
        )
    return _check_used(Schema.infer(X))


def _check_used(schema: Schema) -> Schema:
    if not schema.used:
        first = schema.columns[0] if schema.columns else None
        why = "" if first is None else f": {first.name!r} is {first.describe()}, {first.reason}"
        raise ValueError(
            f"the table has no column that a model can see{why}. Say what a column is by "
            "Schema.infer(table).set(name, kind=...), and give that as family"
        )
    return schema


# ---------------------------------------------------- which settings go together


def _has_no_priors(weights: Any, inference: str, prior: Any) -> bool:
    """Whether there is no prior at all: maximum likelihood."""
    free = name_weights(weights, inference) in ("ml", "fixed")
    return inference == "em" and free and prior is None


def _check_settings_together(mixture: Any) -> None:
    """Refuse settings that are right one by one, but not together."""
    plain = _has_no_priors(mixture.weights, mixture.inference, mixture.prior)
    _check_dicts(mixture)
    if mixture.batch_size is not None and plain:
        raise ValueError(
            "batch_size is for inference 'vb' and for MAP: without a prior there is no memoised "
            f"schedule; got {mixture.batch_size!r}. Leave it out, or use inference='vb' or "
            "prior='default'"
        )
    if mixture.learn_prior and mixture.inference == "em":
        raise ValueError(
            "learn_prior maximises the bound of variational Bayes, or draws the prior with all "
            "else: it needs inference='vb', 'gibbs' or 'collapsed', got inference='em'. Leave it "
            "out, or use 'vb'"
        )


def _check_dicts(mixture: Any) -> None:
    """Settings of families and priors are dicts; of several families one dict for each."""
    prior, options = mixture.prior, mixture.family_options
    usual = prior is None or (isinstance(prior, str) and prior == "default")
    if not usual and not isinstance(prior, Mapping):
        raise TypeError(f"prior must be None, 'default' or a dict, got {prior!r}")
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(
            f"family_options must be None or a dict, such as {{'trials': 10}}; got {options!r}"
        )
    if not isinstance(mixture._family_setting(), Mapping):
        return
    for what, settings in (("prior", {} if usual else prior), ("family_options", options or {})):
        for name, value in settings.items():
            if not isinstance(value, Mapping):
                raise TypeError(
                    f"{what} has a dict for each family, such as {{'poisson': {{...}}}}; for "
                    f"{name!r} it has {value!r}"
                )
