"""The command `assay`, also as `python -m rag_assay`."""

from rag_assay._packages import open_packages


def main() -> None:
    """Run the command line with the packages of rag-assay, whatever the import path has first."""
    open_packages(alone=True)
    from tasks.runtime.start_up import gc_paused, tune_process  # noqa: PLC0415 its packages are open only now

    tune_process()
    with gc_paused():
        from deployments.cli.main import main as run_command  # noqa: PLC0415

    run_command()


if __name__ == "__main__":
    main()
