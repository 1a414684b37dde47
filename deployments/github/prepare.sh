# Install rag-assay into an environment of its own, and name the folders of the other steps.
set -euo pipefail

if [[ ! $NAME =~ ^[A-Za-z0-9._-]+$ ]]; then
    echo "::error::the input 'name' has letters, digits, dots, dashes and underscores only"
    exit 2
fi
root=$RUNNER_TEMP/rag-assay/$NAME
rm -rf "$root/files"  # of an earlier job on the same machine
mkdir -p "$root/files" "$root/home"
for output in venv home run files accepted; do
    echo "$output=$root/$output" >> "$GITHUB_OUTPUT"
done
if [ ! -x "$root/venv/bin/assay" ]; then
    python -m venv "$root/venv"
    "$root/venv/bin/python" -m pip install --quiet "${PACKAGE:-$GITHUB_ACTION_PATH/../..}"
fi
"$root/venv/bin/assay" --version
