#!/usr/bin/env bash
# Runs targets of the Makefile as stages and prints at the end how long each took: stages.sh TARGET... [-- TARGET...]...
# The first group of targets comes first. The groups after it run beside each other: what waits for a browser leaves the processor to what computes.
# What the last group says is shown when its stage ends. After a stage that failed no other begins, and the answer is that of a failure. So it is when a stage
# was not run to its end, whatever has ended it.
set -uo pipefail
cd "$(dirname "$0")/.."
dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
TIMEFORMAT='%R %U %S'

# group runs targets one after another: group HOW TARGET..., where HOW is "live", or "later" for one whose output is kept until its end.
group() {
	local how="$1" target code
	shift
	for target; do
		if [ -e "$dir/failed" ]; then return 1; fi
		if [ "$how" = live ]; then
			echo "== $target"
			{ time "${MAKE:-make}" --no-print-directory "$target" >&8 2>&9; } 8>&1 9>&2 2>"$dir/$target.time"
			code=$?
		else
			{ time "${MAKE:-make}" --no-print-directory "$target" >"$dir/$target.log" 2>&1; } 2>"$dir/$target.time"
			code=$?
			echo "== $target"
			cat "$dir/$target.log"
		fi
		echo "$target $(tail -n 1 "$dir/$target.time") $code" >>"$dir/stages"
		if [ "$code" -ne 0 ]; then
			touch "$dir/failed"
			echo "== $target failed"
			return 1
		fi
	done
}

start=$SECONDS
first=() beside=() how=live groups=() wanted=0 bad=0
while [ $# -gt 0 ] && [ "$1" != -- ]; do first+=("$1") && shift && wanted=$((wanted + 1)); done
group live ${first[@]+"${first[@]}"} || bad=1
while [ $# -gt 0 ]; do
	shift
	beside=()
	while [ $# -gt 0 ] && [ "$1" != -- ]; do beside+=("$1") && shift && wanted=$((wanted + 1)); done
	group "$how" "${beside[@]}" &
	groups+=($!)
	how=later
done
for pid in ${groups[@]+"${groups[@]}"}; do wait "$pid" || bad=1; done
awk 'BEGIN { printf "\n%-14s %8s %10s\n", "stage", "seconds", "processor" }
	{ printf "%-14s %8.0f %10.0f%s\n", $1, $2, $3 + $4, $5 == 0 ? "" : "  failed"; cpu += $3 + $4 }
	END { printf "%-14s %8d %10.0f\n", "all", '"$((SECONDS - start))"', cpu }' "$dir/stages"
ended="$(awk '$5 == 0' "$dir/stages" | wc -l)"
if [ "$bad" -ne 0 ] || [ "$ended" -ne "$wanted" ]; then
	echo "$ended of $wanted stages have ended well"
	exit 1
fi
