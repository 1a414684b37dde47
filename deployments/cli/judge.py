"""`assay judge`: install, launch, inspect and stop a judge server, ask a judge one question, and check a judge."""

import json
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.options import ConfigFile, Json, flag_parameters, with_parameters
from deployments.cli._support.print_document import print_table
from deployments.cli._support.verb import VerbGroup
from deployments.cli.report import RunFolder
from flows.config.loading import load_config
from metric_core.errors import ConfigError
from metric_core.question_kinds import KindGroup
from tasks.calibration.judge_check import QUESTIONS
from tasks.documents.calibration.certificate_text import certificate_lines, certificate_table
from tasks.opening.run_models import RunModels
from tasks.opening.trial import Trial, try_judge
from tasks.options.judge_options import JudgeSettings
from tasks.options.judged_settings import JudgedSettings
from tasks.options.launch_backends import LAUNCH_BACKENDS
from tasks.options.launch_options import LaunchSettings
from tasks.options.load_profile import load_profile
from tasks.options.model_words import replace_judge
from tasks.options.narrow import narrow
from tasks.processes.install import Pins, find_gpus, install_backend
from tasks.processes.judge_service import JudgeStatus, Progress, judge_status, launch_judge, stop_judge
from tasks.runtime.home import assay_home

QUIET_SECONDS = 15.0
"""Seconds between two lines of progress if stderr is not a terminal."""

_PINS = Path(str(files("deployments"))) / "container"
"""Folder of the files that pin the packages of each program."""

VERIFIER = "lettucedetect"
"""Profile of the verifier that `--pair` launches: the only one for vLLM that takes as little as 3 GB of the GPU."""

_ROLES = ("", "verifier")
"""The judge of a home, and the verifier beside it."""

_PAIRED, _VERIFYING = 0.75, 0.12
"""Shares of the GPU's memory that the two servers of a pair take."""

_SHARED = ("python", "container", "entry", "environment", "host", "start_timeout")
"""Launch settings that the verifier of a pair has in common with the other server."""

app = VerbGroup(help="Install, launch, inspect or try a judge server.", no_args_is_help=True)


def _say(sentence: str) -> None:
    stdout.print(sentence)


def _with_launch(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a launched judge to a command, and pass it their values."""
    return with_parameters(command, tuple(flag_parameters(("judge", "launch"))), lambda given: given)


@app.command()
def install(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Folder of the environment. Default: .venv-vllm, with --cpu .venv-llama.", show_default=False
        ),
    ] = None,
    cpu: Annotated[bool, typer.Option("--cpu", help="Install llama.cpp, for a machine without a GPU.")] = False,
    gpu_check: Annotated[bool, typer.Option("--gpu-check/--no-gpu-check", help="Require a GPU and its driver.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be installed.")] = False,
) -> None:
    """Install vLLM (4 GB), or llama.cpp (34 MB), in a separate environment."""
    backend = next(each for each in LAUNCH_BACKENDS.values() if each.needs_gpu is not cpu)
    pins, folder = Pins.read(_PINS / backend.pins), folder or Path(backend.folder)
    for gpu in find_gpus(pins.cuda) if gpu_check and backend.needs_gpu else ():
        _say(f"GPU: {gpu}")
    _say(
        f"{backend.title}: {backend.package} {pins.versions[backend.package]}{_others(pins)}, of pinned versions and "
        f"verified against their hashes: about {backend.download} to download from the package index of pip, and "
        f"{backend.installed} of disk for {folder}. No model is downloaded."
    )
    if dry_run:
        return
    python = install_backend(backend, folder, pins, _say)
    named = "" if str(python) == backend.python else f" --python {shlex.quote(str(python))}"
    _say(f"start it: assay judge start {backend.model}{named}")


def _others(pins: Pins) -> str:
    further = len(pins.versions) - 1
    return f" and {further} more packages" if further else ""


@app.command()
@_with_launch
def start(
    launch: dict[str, Any],
    model: Annotated[
        str | None,
        typer.Argument(help="Name of the model at the hub, or its folder or GGUF file.", show_default=False),
    ] = None,
    config: ConfigFile = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", help="Profile of a verifier: its model and the flags it needs.", metavar="NAME"),
    ] = None,
    pair: Annotated[
        bool, typer.Option("--pair", help=f"Launch the verifier {VERIFIER} beside it, for verdicts on claims.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the server is ready.")] = True,
    as_json: Json = False,
) -> None:
    """Launch a judge server; options override the table [judge.launch] of --config."""
    if pair and profile is not None:
        raise ConfigError("--pair launches a writer and a verifier; leave out --profile, or launch the verifier alone")
    launch |= {"model": model}
    settings = _settings(config, {"gpu_memory_utilization": _PAIRED} | _given(launch) if pair else launch, profile)
    with _progress() as on_progress:
        judge = launch_judge(settings, assay_home(), on_progress, wait=wait)
        if pair:
            shared = {name: getattr(settings, name) for name in _SHARED}
            settings = _settings(None, shared | {"gpu_memory_utilization": _VERIFYING}, VERIFIER)
            verifier = launch_judge(settings, assay_home(), on_progress, wait=wait, role="verifier")
    _print_all(as_json)
    if not as_json:
        named = judge.url if profile is None else f"{profile}@{judge.url}"
        verdicts = f" --judge-verdicts {VERIFIER}@{verifier.url}" if pair else ""
        stdout.print(f"evaluate with it: assay run SOURCE --judge {named}{verdicts}")
        stdout.print("stop it: assay judge stop")


@app.command()
def status(as_json: Json = False) -> None:
    """Show whether a launched judge server is running, and its address."""
    _print_all(as_json)


@app.command()
def stop() -> None:
    """Stop the launched judge server."""
    stopped = [stop_judge(assay_home(), role) for role in _ROLES]
    stdout.print("stopped" if any(stopped) else "no judge was running")


@app.command("try")
def try_(
    passage: Annotated[str, typer.Argument(help="Passage, or @FILE to read it from a file.", show_default=False)],
    claim: Annotated[str, typer.Argument(help="Claim, or @FILE to read it from a file.", show_default=False)],
    config: ConfigFile = None,
    judge: Annotated[
        str | None, typer.Option("--judge", metavar="builtin|URL", help="Judge to ask. Default: that of verdicts.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="The model's name, if the server has several.")] = None,
    as_json: Json = False,
) -> None:
    """Ask whether a passage supports a claim; show request and reply."""
    named: dict[str, Any] = {} if judge is None else {"judge": replace_judge(judge)}
    if model is not None:
        named.setdefault("judge", {}).setdefault("server", {})["model"] = model
    loaded = load_config(config, named)
    lead, *others = (loaded.judge,) if judge is not None else loaded.judges_of(KindGroup.VERDICTS)
    if lead.launch is not None:
        raise ConfigError(
            "the judge of verdicts is launched by each run; start it with `assay judge start`, and name its URL with "
            "--judge"
        )
    asked = narrow(lead, JudgeSettings, **dict.fromkeys(KindGroup))
    settings = narrow(loaded, JudgedSettings, judge=asked, panel=tuple(others), refresh=True)
    trial = try_judge(RunModels().open_judges(settings), _text_of(passage), _text_of(claim))
    if as_json:
        stdout.print_json(json.dumps(_trial_content(trial), default=str))
    else:
        _print_trial(trial)


def _text_of(argument: str) -> str:
    """Return an argument, or the content of the file that it names after an @."""
    if not argument.startswith("@"):
        return argument
    try:
        return Path(argument[1:]).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{argument[1:]} cannot be read as text: {error}; name a UTF-8 file after the @") from error


def _trial_content(trial: Trial) -> dict[str, Any]:
    answer = trial.answer
    return {
        "judge": asdict(trial.judge),
        "requests": [asdict(request) for request in trial.requests],
        "status": answer.status,
        "verdict": answer.label,
        "probability": trial.probability,
        "reason": answer.reason,
        "panel": [asdict(vote) for vote in answer.panel],
    }


def _print_trial(trial: Trial) -> None:
    stdout.print(f"judge: {trial.judge.backend}: {trial.judge.model}")
    for request in trial.requests:
        stdout.print(f"request: POST {request.path} to {' or '.join(request.urls)}")
        stdout.print(_pretty(request.body))
        stdout.print(f"reply: status {request.status} after {request.seconds:.2f} s")
        stdout.print(_pretty(request.reply))
    if not trial.requests:
        stdout.print("request: none, the judge works in this process")
    answer = trial.answer
    for vote in answer.panel:
        stdout.print(f"{vote.judge}: {_verdict(vote.label, vote.probability)}")
    verdict = _verdict(answer.label, trial.probability)
    stdout.print(f"verdict: {verdict}" if answer.reason is None else f"{answer.status}: {answer.reason}")


def _verdict(label: str | None, probability: float | None) -> str:
    told = "" if probability is None else f", probability {probability:.4f}"
    return f"{label or 'none'}{told}"


def _pretty(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False, default=str)


@app.command()
def check(
    run: RunFolder,
    questions: Annotated[
        int, typer.Option("--questions", min=100, help="Largest number of questions to ask.", show_default=True)
    ] = QUESTIONS,
    as_json: Json = False,
) -> None:
    """Check the judge of a run: do planted changes of its rows move verdicts?"""
    from flows.judge_check import check_judge  # noqa: PLC0415 loads Prefect

    checked = check_judge(run, questions)
    certificate = checked.certificate
    if as_json:
        stdout.print_json(json.dumps(certificate.model_dump(mode="json")))
        return
    print_table(stdout, certificate_table(certificate))
    for line in certificate_lines(certificate):
        stdout.print(line)
    for warning in checked.certificate.warnings:
        stderr.print(f"warning: {warning}", style="yellow")
    stdout.print(
        f"judge {checked.certificate.judge}: {checked.certificate.questions} questions asked about claims of "
        f"{checked.certificate.rows} rows; certificate: {checked.kept}"
    )


@app.command()
def env(
    profile: Annotated[str, typer.Argument(help="Packaged profile of a verifier, or a file.", metavar="PROFILE")],
) -> None:
    """Print the variables with which the compose file serves a verifier."""
    chosen = load_profile(profile)
    if chosen.route is None:
        raise ConfigError(
            f"no server serves the model of the profile {profile}; it runs in the process of the evaluation: "
            f"assay run SOURCE --judge {profile}"
        )
    if not chosen.model:
        raise ConfigError(f"the profile {profile} is for several models; set JUDGE_MODEL to the one that you serve")
    serving = chosen.serving
    variables = {
        "JUDGE_MODEL": chosen.model,
        "JUDGE_DTYPE": serving.dtype,
        "JUDGE_MAX_MODEL_LEN": serving.max_model_len or chosen.chunks.window,
        "JUDGE_EXTRA_ARGS": shlex.quote(shlex.join(serving.extra_args)),
    }
    for name, value in variables.items():
        stdout.print(f"{name}={value}")


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _settings(config: Path | None, given: dict[str, Any], profile: str | None) -> LaunchSettings:
    launch = _given(given)
    judge: dict[str, Any] = {"launch": launch} if launch else {}
    judge |= {"profile": profile} if profile is not None else {}
    settings = load_config(config, {"judge": judge} if judge else None).judge.launch
    if settings is None:
        raise ConfigError(
            "the judge to launch is not configured. Name its model (assay judge start MODEL, a GGUF file for a machine "
            "without a GPU) or --profile; or use --config with a configuration that has the table [judge.launch]."
        )
    return settings


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show the seconds and the last line of the log: as a status line in a terminal, else as occasional lines."""
    if stderr.is_terminal:
        with stderr.status("launching the judge") as shown:
            yield lambda seconds, line: shown.update(Text(_line(seconds, line), overflow="ellipsis", no_wrap=True))
        return
    last_line = time.monotonic()

    def print_progress(seconds: float, line: str) -> None:
        nonlocal last_line
        if time.monotonic() - last_line >= QUIET_SECONDS:
            last_line = time.monotonic()
            stderr.print(_line(seconds, line))

    yield print_progress


def _line(seconds: float, line: str) -> str:
    return f"launching the judge, {seconds:.0f} s: {line}"


def _print_all(as_json: bool) -> None:
    """Print the state of the judge of the home, and of the verifier beside it if there is one."""
    first, second = (judge_status(assay_home(), role) for role in _ROLES)
    if as_json:
        content = _status_content(first)
        content |= {"verifier": _status_content(second)} if second.record is not None else {}
        stdout.print_json(json.dumps(content))
        return
    stdout.print(str(first))
    if second.record is not None:
        stdout.print(str(second))


def _status_content(status: JudgeStatus) -> dict[str, Any]:
    record = status.record
    return {
        "running": record is not None,
        "healthy": status.healthy,
        "url": record and record.url,
        "pid": record and record.pid,
        "model": record and record.model,
        "backend": record and record.backend,
        "speed": record and record.speed,
        "uptime": record and round(status.uptime, 1),
        "log": record and str(status.service.log),
    }
