#!/usr/bin/env bash
# Runs each fuzz target for a while, two at a time: fuzz.sh TIME [DIRECTORY...]. Without directories: all of the module but those that stand on large
# libraries, which take minutes to instrument; their targets are run with the inputs that are kept, as any test.
#
# A race in Go before 1.27 may end a run at its time limit with a bare "context deadline exceeded"; that is told and passed over, but only when no failing
# input was written.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1-}" = --one ]; then
	time="$2" file="${3%%:*}" target="${3#*:}"
	log="$(mktemp)"
	trap 'rm -f "$log"' EXIT
	if "${GO:-go}" test -vet=off -run '^$' -fuzz "^$target\$" -fuzztime "$time" -parallel 1 "./$(dirname "$file")" >"$log" 2>&1; then
		echo "fuzz $file $target for $time: $(tail -n 1 "$log")"
	elif grep -q '^ *context deadline exceeded$' "$log" && ! grep -q -e 'Failing input' -e panic "$log"; then
		echo "fuzz $file $target: NOTICE: the run ended at its time limit without an answer of its workers; no failing input was found"
	else
		echo "fuzz $file $target failed:"
		cat "$log"
		exit 1
	fi
	exit 0
fi

time="$1"
shift
skip=()
if [ $# -eq 0 ]; then
	set -- .
	skip=(--exclude-dir=app --exclude-dir=builtin --exclude-dir=mcp --exclude-dir=integration)
fi
targets="$(grep -r "${skip[@]}" --exclude-dir=node_modules --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*(' "$@" | sed 's/:func \(Fuzz[A-Za-z0-9_]*\)(.*/:\1/' | sort)"
if [ -z "$targets" ]; then
	echo "no fuzz target in $*" >&2
	exit 1
fi
printf '%s\n' "$targets" | xargs -P 2 -n 1 "$PWD/scripts/fuzz.sh" --one "$time"
