#!/bin/sh
# results.sh SGDPH OUTPUT: the long form of docs/results.md, as a page and as Markdown with figures, from the records in
# experiments/ and without training. SGDPH is the program, OUTPUT a folder.
set -eu
sgdph=$(realpath "$1")
output=$(realpath -m "$2")
cd "$(dirname "$0")/.."
mkdir -p "$output"
for experiment in cifar rates curvature best-rates; do
  "$sgdph" reproduce "$experiment" --records experiments/records.jsonl --output-dir "$output/tables" >/dev/null
done
# The text of the short page stands first; its tables are in the long ones.
sed '1d; /^## The tables/,$d' docs/results.md >"$output/findings.md"
set -- experiments/records.jsonl experiments "$output/tables" --title 'A study at desk scale' --notes "$output/findings.md"
"$sgdph" report "$@" --output "$output/results.html"
"$sgdph" report "$@" --format markdown --output "$output/results.md" --figures "$output/figures"
