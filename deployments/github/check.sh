# Compare the run with the baseline and apply the gate. A run that passes on a branch is the baseline of its pull requests.
set -euo pipefail

baseline=$BASELINE
if [ -z "$baseline" ] && [ -f "$ACCEPTED/run.json" ]; then baseline=$ACCEPTED; fi
is_pull_request=false
case $GITHUB_EVENT_NAME in pull_request | pull_request_target) is_pull_request=true ;; esac

command=("$VENV/bin/assay" compare)
if [ -n "$baseline" ]; then
    command+=("$baseline" "$RUN" --html "$FILES/comparison.html")
else
    command+=("$RUN")
    if [ "$is_pull_request" = false ] || [ "$REQUIRE_BASELINE" = false ]; then command+=(--without-baseline); fi
fi
if [ -n "$GATE" ]; then command+=(--gate "$GATE" --junit "$FILES/gate.xml"); fi

code=0
outcome=compared
if [ -n "$baseline$GATE" ]; then
    stop=$("$VENV/bin/python" -c 'import secrets; print(secrets.token_hex())')
    echo "::stop-commands::$stop"  # the output quotes data, which could begin a line with a command of the workflow
    "${command[@]}" --markdown "$FILES/comparison.md" 2>&1 | tee "$FILES/error.txt" || code=${PIPESTATUS[0]}
    printf '\n::%s::\n' "$stop"
    case $code in
        0) if [ -n "$GATE" ]; then outcome=passed; fi ;;
        10) outcome=failed ;;
        11) outcome=inconclusive ;;
        12) outcome=refused ;;
        *) outcome=error ;;
    esac
    case $code in 0 | 10 | 11) rm -f "$FILES/error.txt" ;; esac  # the Markdown says it better
fi
if [ -z "$baseline" ]; then
    echo "There is no earlier run to compare with: a run of this workflow on the base branch becomes the baseline." \
        > "$FILES/note.txt"
    echo "::notice::$(cat "$FILES/note.txt")"
fi
echo "outcome=$outcome" >> "$GITHUB_OUTPUT"
if [ -f "$FILES/comparison.md" ]; then cat "$FILES/comparison.md" >> "$GITHUB_STEP_SUMMARY"; fi
if [ "$code" -ne 0 ]; then
    echo "::error::$outcome: assay compare ended with exit code $code"
    exit "$code"
fi
if [ "$is_pull_request" = false ]; then
    rm -rf "$ACCEPTED"
    cp -r "$RUN" "$ACCEPTED"
    echo "accepted=true" >> "$GITHUB_OUTPUT"
fi
