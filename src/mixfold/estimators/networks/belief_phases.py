"""The phases in which a DeepBeliefNetwork is learned: layers, chains at the top, fine-tuning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import Array, Block, record
from mixfold.engine.batches import take_rows
from mixfold.engine.epoch_phases import Phase, TrainingTask
from mixfold.engine.epochs import EpochPlan
from mixfold.estimators.networks.batch_training import SLOW_EPOCHS, SLOW_MOMENTUM
from mixfold.estimators.networks.visible_rows import SINGLE
from mixfold.math.rates import Constant, Dropped, Linear, Switched
from mixfold.models.networks.adam import Adam, AdamState, adam_state
from mixfold.models.networks.belief import use
from mixfold.models.networks.belief.learner import UpDownLearner
from mixfold.models.networks.belief.records import (
    BeliefParams,
    BeliefState,
    Directed,
    tie_weights,
    untie_weights,
)
from mixfold.models.networks.boltzmann.gibbs import (
    ContrastiveDivergence,
    PersistentChains,
    beginnings,
)
from mixfold.models.networks.boltzmann.learner import RBMLearner
from mixfold.models.networks.boltzmann.records import RBMParams, RBMState, first_params, first_state
from mixfold.models.networks.boltzmann.statistics import positive_phase
from mixfold.models.networks.boltzmann.units import Units, bits
from mixfold.models.networks.records import Network

# chains of the top that persist, and their rate as a share of that of the layer
CHAINS, CHAIN_RATE = 100, 0.4


@record
@dataclass(frozen=True, slots=True)
class Stack:
    """What has been learned so far: machines from below, the network of them, a classifier."""

    machines: tuple[RBMParams, ...] = ()
    params: BeliefParams | None = None
    network: Network | None = None


@dataclass(frozen=True, slots=True)
class PhaseSettings:
    """Everything a phase has to know besides what is learned already.

    ``label_bias`` (C,) are the biases of labels without units; ``rates`` of machines, by layer.
    """

    rows: Block
    validation: Block | None
    hidden: tuple[int, ...]
    units: Units
    label_bias: Array
    rates: tuple[float, ...]
    n_steps: int
    momentum: float
    l2: float
    plan: EpochPlan
    chain_plan: EpochPlan
    fine_plan: EpochPlan
    up_down_rate: float
    network_rate: float

    def phases(self, fine_tune: Sequence[str]) -> list[Phase]:
        """Greedy layers, chains at the top, then what ``fine_tune`` names."""
        greedy = [
            Phase(f"layer {number + 1}", self._layer_lesson, _with_machine)
            for number in range(len(self.hidden))
        ]
        if self.chain_plan.max_epochs:
            greedy.append(Phase("chains", self._chains_lesson, _with_top_machine))
        fine = {
            "up-down": Phase("up-down", self._up_down_lesson, _with_params),
            "discriminative": Phase("discriminative", self._discriminative_lesson, _with_network),
        }
        return greedy + [fine[name] for name in fine_tune]

    # ------------------------------------------------ greedy layers

    def _layer_lesson(self, stack: Stack) -> TrainingTask:
        number = len(stack.machines)
        rows, validation = self._rows_above(stack.machines)
        units = use.units_at(self.units, number)
        momentum = Switched(min(SLOW_MOMENTUM, self.momentum), self.momentum, SLOW_EPOCHS)
        negative = ContrastiveDivergence(self.n_steps)
        learner = RBMLearner(units, negative, Dropped(self.rates[number]), momentum, self.l2)
        start = self._first_state(stack, number, units, rows)
        # each phase draws its own numbers
        plan = replace(self.plan, seed=self.plan.seed + number)
        return TrainingTask(learner, start, rows, plan, validation)

    def _rows_above(self, machines: tuple[RBMParams, ...]) -> tuple[Block, Block | None]:
        """The rows, and those held out, as the machine above these sees them."""
        directed = tuple(untie_weights(machine) for machine in machines)
        rows = replace(self.rows, X=pass_up(directed, self.rows.X))
        if self.validation is None:
            return rows, None
        return rows, replace(self.validation, X=pass_up(directed, self.validation.X))

    def _chains_lesson(self, stack: Stack) -> TrainingTask:
        """The machine at the top goes on, with chains that begin at rows."""
        below, top = stack.machines[:-1], stack.machines[-1]
        rows, validation = self._rows_above(below)
        rng = np.random.default_rng([self.chain_plan.seed % 2**63, 2**33, len(self.hidden)])
        begin = take_rows(rows, rng.permutation(rows.n_rows)[:CHAINS])
        hidden = bits(beginnings(top, positive_phase(top, begin), rng), rng)
        learner = RBMLearner(
            use.units_at(self.units, len(below)),
            PersistentChains(1, len(hidden)),
            Linear(CHAIN_RATE * self.rates[-1]),
            Constant(min(SLOW_MOMENTUM, self.momentum)),
            self.l2,
        )
        start = RBMState(top.map(np.copy), top.map(np.zeros_like), hidden)
        plan = replace(self.chain_plan, seed=self.chain_plan.seed + len(self.hidden))
        return TrainingTask(learner, start, rows, plan, validation)

    def _first_state(self, stack: Stack, number: int, units: Units, rows: Block) -> RBMState:
        rng = np.random.default_rng([self.plan.seed % 2**63, 2**33, number])
        top = number == len(self.hidden) - 1
        bias = units.bias(np.average(rows.X, axis=0, weights=rows.weight))
        labels = self.label_bias if top else np.zeros(0)
        params = first_params(bias, self.hidden[number], labels, rng, SINGLE)
        if number and use.units_at(self.units, number - 1).countable:
            params = tie_weights(stack.machines[-1], params)
        return first_state(params, 0, rng)

    # ------------------------------------------------ fine-tuning

    def _up_down_lesson(self, stack: Stack) -> TrainingTask:
        params = assemble(stack)
        # what one direction learns moves the other's target: long strides do harm here
        momentum = Constant(min(SLOW_MOMENTUM, self.momentum))
        learner = UpDownLearner(self.units, Linear(self.up_down_rate), momentum, self.l2)
        start = BeliefState(params, params.map(np.zeros_like))
        plan = replace(self.fine_plan, seed=self.fine_plan.seed + 1000)
        return TrainingTask(learner, start, self.rows, plan, self.validation)

    def _discriminative_lesson(self, stack: Stack) -> TrainingTask:
        network = unroll(assemble(stack))
        rate = Linear(self.network_rate, 0.01 * self.network_rate)
        plan = replace(self.fine_plan, seed=self.fine_plan.seed + 2000)
        return TrainingTask(
            Adam(rate, self.l2 / max(self.rows.n_rows, 1)),
            adam_state(network),
            _take_labelled(self.rows),
            plan,
            None if self.validation is None else _take_labelled(self.validation),
        )


def pass_up(layers: tuple[Directed, ...], X: Array, tile: int = 4096) -> Array:
    """Expected units of the highest layer, a few rows at a time."""
    if not layers:
        return X
    return np.concatenate(
        [use.up_means(layers, X[i : i + tile]) for i in range(0, max(len(X), 1), tile)]
    )


def assemble(stack: Stack) -> BeliefParams:
    """The network of the machines, unless it has been tuned already."""
    if stack.params is not None:
        return stack.params
    return BeliefParams(tuple(untie_weights(m) for m in stack.machines[:-1]), stack.machines[-1])


def unroll(params: BeliefParams) -> Network:
    """The pass upward with a softmax on the highest units, as the start of back-propagation."""
    top = params.top
    weights = (*(layer.up for layer in params.layers), top.weights, top.label_weights.T)
    biases = (*(layer.up_bias for layer in params.layers), top.hidden, top.label_bias)
    return Network(weights, biases, "logistic")


def _take_labelled(rows: Block) -> Block:
    known = np.flatnonzero(np.asarray(rows.y) >= 0)
    return rows if len(known) == rows.n_rows else take_rows(rows, known)


def _with_machine(stack: Stack, learned: RBMState) -> Stack:
    return replace(stack, machines=(*stack.machines, learned.params))


def _with_top_machine(stack: Stack, learned: RBMState) -> Stack:
    return replace(stack, machines=(*stack.machines[:-1], learned.params))


def _with_params(stack: Stack, learned: BeliefState) -> Stack:
    return replace(stack, params=learned.params)


def _with_network(stack: Stack, learned: AdamState) -> Stack:
    return replace(stack, params=assemble(stack), network=learned.network)
