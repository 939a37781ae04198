"""A Dask cluster for the time of one command."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="A Dask cluster, as tcp://host:8786.",
    ),
]

_SECONDS = "10s"  # to wait for a scheduler


def check_scheduler(scheduler: str | None, parameters: dict[str, Any]) -> None:
    """A usage error if the rows are to be visited elsewhere as well."""
    executor = parameters.get("executor", "dask")
    if scheduler is not None and executor != "dask":
        raise typer.BadParameter(
            f"executor={executor!r} is no cluster; leave one of both out.", param_hint="--scheduler"
        )


@contextlib.contextmanager
def on_cluster(estimator: Any, scheduler: str | None) -> Iterator[None]:
    """Within: the estimator works on a cluster, if one was asked for. Then it is as before.

    A model file asks for no cluster: afterwards ``executor`` is "threads", so that everybody can
    use the model.
    """
    if scheduler is None and getattr(estimator, "executor", None) != "dask":
        yield
        return
    if not hasattr(estimator, "executor"):
        raise typer.BadParameter(
            f"a {type(estimator).__name__} is not fitted on a cluster; leave the option out.",
            param_hint="--scheduler",
        )
    with _client(scheduler):
        estimator.set_params(executor="dask")
        try:
            yield
        finally:
            estimator.set_params(executor="threads")


def cluster_for(estimators: Iterable[Any]) -> contextlib.AbstractContextManager[Any]:
    """A cluster on this machine, if one of the estimators is to be fitted on one."""
    wanted = any(getattr(one, "executor", None) == "dask" for one in estimators)
    return _client(None) if wanted else contextlib.nullcontext()


def use_threads(model: Any) -> None:
    """A loaded model is applied here, wherever it was fitted."""
    if getattr(model, "executor", None) == "dask":
        model.set_params(executor="threads")


def _client(scheduler: str | None) -> contextlib.AbstractContextManager[Any]:
    try:
        import dask
        from distributed import Client
    except ImportError as error:
        raise ImportError(
            "a Dask cluster needs the package 'distributed': pip install 'mixfold[dask]'"
        ) from error
    if scheduler is None:
        return Client(dashboard_address=None, set_as_default=True)
    default = dask.config.get("scheduler", None)
    try:
        return Client(scheduler, timeout=_SECONDS, set_as_default=True)
    except (OSError, ValueError, TypeError) as error:
        # A client that cannot connect has already made itself the scheduler of all of Dask.
        dask.config.set(scheduler=default)
        raise ValueError(
            f"--scheduler: no Dask scheduler answers at {scheduler!r} ({error}). Start one with "
            "'dask scheduler' and give the address that it prints, as tcp://host:8786"
        ) from error
