"""The phases in which a deep belief network is learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import Array, Block, record
from mixfold.engine.epoch_phases import Lesson, Phase
from mixfold.engine.epochs import EpochPlan, take
from mixfold.math.rates import Constant, Dropped, Linear, Switched
from mixfold.models.networks.adam import Adam, AdamState, adam_state
from mixfold.models.networks.belief import use
from mixfold.models.networks.belief.learner import UpDownLearner
from mixfold.models.networks.belief.records import BeliefParams, BeliefState, Directed, tied, untied
from mixfold.models.networks.boltzmann.gibbs import (
    ContrastiveDivergence,
    PersistentChains,
    beginnings,
)
from mixfold.models.networks.boltzmann.learner import RBMLearner
from mixfold.models.networks.boltzmann.records import RBMParams, RBMState, first_params, first_state
from mixfold.models.networks.boltzmann.statistics import seen
from mixfold.models.networks.boltzmann.units import Units, bits
from mixfold.models.networks.records import Network

SINGLE = np.dtype(np.float32)
# epochs before momentum is at its full size, and its size until then
SLOW_EPOCHS, SLOW = 5, 0.5
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
class Recipe:
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
            Phase(f"layer {number + 1}", self._layer, _grown) for number in range(len(self.hidden))
        ]
        if self.chain_plan.max_epochs:
            greedy.append(Phase("chains", self._chains, _regrown))
        fine = {
            "up-down": Phase("up-down", self._up_down, _tuned),
            "discriminative": Phase("discriminative", self._discriminative, _unrolled),
        }
        return greedy + [fine[name] for name in fine_tune]

    # ------------------------------------------------ greedy layers

    def _layer(self, stack: Stack) -> Lesson:
        number = len(stack.machines)
        rows, validation = self._seen_from(stack.machines)
        units = use.units_at(self.units, number)
        momentum = Switched(min(SLOW, self.momentum), self.momentum, SLOW_EPOCHS)
        negative = ContrastiveDivergence(self.n_steps)
        learner = RBMLearner(units, negative, Dropped(self.rates[number]), momentum, self.l2)
        start = self._first(stack, number, units, rows)
        # each phase draws its own numbers
        plan = replace(self.plan, seed=self.plan.seed + number)
        return Lesson(learner, start, rows, plan, validation)

    def _seen_from(self, machines: tuple[RBMParams, ...]) -> tuple[Block, Block | None]:
        """The rows, and those held out, as the machine above these sees them."""
        directed = tuple(untied(machine) for machine in machines)
        rows = replace(self.rows, X=passed_up(directed, self.rows.X))
        if self.validation is None:
            return rows, None
        return rows, replace(self.validation, X=passed_up(directed, self.validation.X))

    def _chains(self, stack: Stack) -> Lesson:
        """The machine at the top goes on, with chains that begin at rows."""
        below, top = stack.machines[:-1], stack.machines[-1]
        rows, validation = self._seen_from(below)
        rng = np.random.default_rng([self.chain_plan.seed % 2**63, 2**33, len(self.hidden)])
        begin = take(rows, rng.permutation(rows.n_rows)[:CHAINS])
        hidden = bits(beginnings(top, seen(top, begin), rng), rng)
        learner = RBMLearner(
            use.units_at(self.units, len(below)),
            PersistentChains(1, len(hidden)),
            Linear(CHAIN_RATE * self.rates[-1]),
            Constant(min(SLOW, self.momentum)),
            self.l2,
        )
        start = RBMState(top.map(np.copy), top.map(np.zeros_like), hidden)
        plan = replace(self.chain_plan, seed=self.chain_plan.seed + len(self.hidden))
        return Lesson(learner, start, rows, plan, validation)

    def _first(self, stack: Stack, number: int, units: Units, rows: Block) -> RBMState:
        rng = np.random.default_rng([self.plan.seed % 2**63, 2**33, number])
        top = number == len(self.hidden) - 1
        bias = units.bias(np.average(rows.X, axis=0, weights=rows.weight))
        labels = self.label_bias if top else np.zeros(0)
        params = first_params(bias, self.hidden[number], labels, rng, SINGLE)
        if number and use.units_at(self.units, number - 1).countable:
            params = tied(stack.machines[-1], params)
        return first_state(params, 0, rng)

    # ------------------------------------------------ fine-tuning

    def _up_down(self, stack: Stack) -> Lesson:
        params = assembled(stack)
        # what one direction learns moves the other's target: long strides do harm here
        momentum = Constant(min(SLOW, self.momentum))
        learner = UpDownLearner(self.units, Linear(self.up_down_rate), momentum, self.l2)
        start = BeliefState(params, params.map(np.zeros_like))
        plan = replace(self.fine_plan, seed=self.fine_plan.seed + 1000)
        return Lesson(learner, start, self.rows, plan, self.validation)

    def _discriminative(self, stack: Stack) -> Lesson:
        network = unrolled(assembled(stack))
        rate = Linear(self.network_rate, 0.01 * self.network_rate)
        plan = replace(self.fine_plan, seed=self.fine_plan.seed + 2000)
        return Lesson(
            Adam(rate, self.l2 / max(self.rows.n_rows, 1)),
            adam_state(network),
            _labelled(self.rows),
            plan,
            None if self.validation is None else _labelled(self.validation),
        )


def passed_up(layers: tuple[Directed, ...], X: Array, tile: int = 4096) -> Array:
    """Expected units of the highest layer, a few rows at a time."""
    if not layers:
        return X
    return np.concatenate(
        [use.up_means(layers, X[i : i + tile]) for i in range(0, max(len(X), 1), tile)]
    )


def assembled(stack: Stack) -> BeliefParams:
    """The network of the machines, unless it has been tuned already."""
    if stack.params is not None:
        return stack.params
    return BeliefParams(tuple(untied(m) for m in stack.machines[:-1]), stack.machines[-1])


def unrolled(params: BeliefParams) -> Network:
    """The pass upward with a softmax on the highest units, as the start of back-propagation."""
    top = params.top
    weights = (*(layer.up for layer in params.layers), top.weights, top.label_weights.T)
    biases = (*(layer.up_bias for layer in params.layers), top.hidden, top.label_bias)
    return Network(weights, biases, "logistic")


def _labelled(rows: Block) -> Block:
    known = np.flatnonzero(np.asarray(rows.y) >= 0)
    return rows if len(known) == rows.n_rows else take(rows, known)


def _grown(stack: Stack, learned: RBMState) -> Stack:
    return replace(stack, machines=(*stack.machines, learned.params))


def _regrown(stack: Stack, learned: RBMState) -> Stack:
    return replace(stack, machines=(*stack.machines[:-1], learned.params))


def _tuned(stack: Stack, learned: BeliefState) -> Stack:
    return replace(stack, params=learned.params)


def _unrolled(stack: Stack, learned: AdamState) -> Stack:
    return replace(stack, params=assembled(stack), network=learned.network)
