"""Open a run: its folder, its judge, its manifest and its task runner, for a block."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from prefect.runtime import flow_run

from flows.execution.run_record import build_record, choose_folder, record_run
from flows.execution.runners import start_runner
from flows.execution.spending import meter_run
from flows.planning.run_plan import RunPlan
from flows.publishing.artifacts import show_progress
from flows.publishing.run_subject import RunSubject
from metric_core.question_kinds import KindGroup
from tasks.engine.concurrency_limits import create_limits
from tasks.findings.table import nested_folders
from tasks.history.run_entry import evaluation_name
from tasks.opening.caches import open_cache
from tasks.opening.run_models import RunModels, models_for
from tasks.options.run_model_options import RunModelOptions
from tasks.processes.judge_service import launch_for_scope
from tasks.record.findings import HasEntry
from tasks.record.other_runs import RunReference
from tasks.record.run_record import RunRecord
from tasks.rows.tables_in_use import mark_in_use
from tasks.runs.run_folder import RunFolder
from tasks.runs.run_start import start_entry
from tasks.runtime.home import assay_home


@dataclass(frozen=True, slots=True)
class Run:
    """A run in progress.

    Args:
        plan: Plan of the run, whose judge is running.
        folder: Run folder, locked by this run.
        record: Record of the run at its start.
        subject: Subject of the run, which names its artifacts.
    """

    plan: RunPlan
    models: RunModels
    folder: RunFolder
    record: RunRecord
    subject: RunSubject

    @property
    def tables(self) -> str:
        """The root of the table store."""
        return self.plan.storage.tables_root


@contextmanager
def start_run(
    plan: RunPlan,
    spent: Callable[[RunPlan], Sequence[HasEntry]],
    origin: RunReference | None = None,
    subject: RunSubject | None = None,
    before: Sequence[HasEntry] = (),
) -> Iterator[Run]:
    """Open a run for the block; if the block fails, run.json says that the run failed and why.

    Args:
        spent: Function that returns what a run that did not finish has of its findings.
        origin: Run that this is a rerun of; None if it is not.
        subject: Subject of the run; by default its deployment alone.
        before: Entries of findings made before the run, with which its record begins.

    Raises:
        AssayError: The run folder, the judge or the task runner cannot be used.
    """
    options, outputs = plan.models, plan.outputs
    about = subject or RunSubject.of_run()
    folder = choose_folder(plan.folder)
    is_judged = bool(plan.metrics.kinds)
    with folder.lock(nested_folders()), meter_run(options), running_judges(options, needed=is_judged) as urls:
        models, ready = models_for(str(flow_run.id), plan.storage.tables_root), plan.with_launched_judges(urls)
        record = build_record(ready, models).extend(
            name=evaluation_name(outputs.name, about.name, ready.source.source),
            deployment=about.entry,
            start=start_entry(),
            **({} if origin is None else {"parent": origin}),
        )
        record = record.with_findings(*before)
        run = Run(ready, models, folder, record, about)
        in_use, running = mark_in_use(run.tables, record.run_id), start_runner(ready.storage, options.cache)
        with record_run(folder, record, outputs.history, partial(spent, ready)), in_use, show_progress(about), running:
            yield run


@contextmanager
def running_judges(models: RunModelOptions, *, needed: bool = True) -> Iterator[Mapping[KindGroup | None, str]]:
    """Launch judges for the block as `launched_judges` does, once their limits exist on the Prefect server."""
    create_limits(models.judges, update=False)
    with launched_judges(models, needed=needed) as urls:
        yield urls


@contextmanager
def launched_judges(models: RunModelOptions, *, needed: bool = True) -> Iterator[Mapping[KindGroup | None, str]]:
    """Launch the judges that options say to launch for the block, and yield their URLs.

    Several are launched one after the other, because each measures the free memory of the GPU when it starts. Answers
    that could not be cached at once are cached at the end of the block if possible.

    Args:
        needed: False to launch none.
    """
    try:
        with ExitStack() as launched:
            urls: dict[KindGroup | None, str] = {}
            by_digest: dict[str, str] = {}
            for group, settings in models.launches.items() if needed else ():
                digest = settings.digest()
                if digest not in by_digest:
                    scope = launch_for_scope(settings, assay_home(), role=group or "")
                    by_digest[digest] = launched.enter_context(scope).url
                urls[group] = by_digest[digest]
            yield urls
    finally:
        open_cache(models.cache).flush()
