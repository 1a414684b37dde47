# Evaluate the answers. What an evaluation that fails says is kept for the comment.
set -euo pipefail

read -r -a arguments <<< "${ARGUMENTS//$'\n'/ }"
rm -rf "$RUN"
code=0
stop=$("$VENV/bin/python" -c 'import secrets; print(secrets.token_hex())')
echo "::stop-commands::$stop"  # the output quotes data, which could begin a line with a command of the workflow
"$VENV/bin/assay" run "$CONFIG" --out "$RUN" ${arguments[@]+"${arguments[@]}"} 2>&1 | tee "$FILES/error.txt" ||
    code=${PIPESTATUS[0]}
"$VENV/bin/assay" server stop > /dev/null || true
printf '\n::%s::\n' "$stop"
if [ -f "$RUN/report.html" ]; then cp "$RUN/report.html" "$FILES/report.html"; fi
if [ "$code" -ne 0 ]; then
    echo "::error::assay run ended with exit code $code"
    exit "$code"
fi
rm -f "$FILES/error.txt"
