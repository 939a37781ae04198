"""The law of models that remember rows finds those that break it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Block
from mixfold.models.topics.lda import LDAModel
from mixfold.models.topics.plsi import PLSIModel
from mixfold.models.topics.records import TopicParams
from mixfold.testing import Case, laws


def case_of(model: type, **settings: Any) -> Case:
    rng = np.random.default_rng(3)
    X = rng.poisson(rng.dirichlet(np.ones(4), 40) @ rng.dirichlet(np.full(9, 0.3), 4) * 30) * 1.0
    first = TopicParams(rng.gamma(1.0, size=(3, 9)) + 0.1, np.full(3, 0.4), 0.1)
    return Case(model(first, **settings), X, rtol=1e-9)


@pytest.mark.parametrize("model", [LDAModel, PLSIModel])
def test_topic_models_keep_it(model: type) -> None:
    laws.remembered_rows(case_of(model))


@dataclass(frozen=True)
class ByBlock(LDAModel):
    """Remembers of a document what depends on its neighbours."""

    def expect(self, reading: Any, block: Block, rng: Any, memory: Any = None) -> Any:
        stats = super().expect(reading, block, rng, memory)
        if memory is not None:
            kept = memory._fresh[block.start : block.start + block.n_rows]
            kept += 0.01 * kept.mean(axis=0)
        return stats


@dataclass(frozen=True)
class Hasty(LDAModel):
    """Takes what it finds for granted before the pass is accepted."""

    def expect(self, reading: Any, block: Block, rng: Any, memory: Any = None) -> Any:
        stats = super().expect(reading, block, rng, memory)
        if memory is not None and memory.state is not None:
            memory.accept()
        return stats


@dataclass(frozen=True)
class Numbered(LDAModel):
    """Numbers rows from the beginning of their block."""

    def expect(self, reading: Any, block: Block, rng: Any, memory: Any = None) -> Any:
        return super().expect(reading, replace(block, start=0), rng, memory)


@pytest.mark.parametrize("broken", [ByBlock, Hasty, Numbered])
def test_it_can_be_broken(broken: type) -> None:
    with pytest.raises((AssertionError, RuntimeError), match=r"memory of rows|keep each row once"):
        laws.remembered_rows(case_of(broken))
