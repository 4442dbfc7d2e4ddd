#!/usr/bin/env bash
# Lists the packages that start goroutines of their own, they themselves or their tests: those in which the race detector has most to find. Others may be called from
# many goroutines, by a server of their tests for instance; `make race-all` watches these, too.
set -euo pipefail
cd "$(dirname "$0")/.."
"${GO:-go}" list -f '{{$dir := .Dir}}{{$path := .ImportPath}}{{range .GoFiles}}{{$path}} {{$dir}}/{{.}}
{{end}}{{range .TestGoFiles}}{{$path}} {{$dir}}/{{.}}
{{end}}{{range .XTestGoFiles}}{{$path}} {{$dir}}/{{.}}
{{end}}' ./... | awk 'NF == 2 { path = $1; while ((getline line < $2) > 0) if (line ~ /^[\t ]*go ([A-Za-z_.]+\(|func)|[A-Za-z_]\.Go\(/) found[path] = 1; close($2) }
	END { for (path in found) print path }' | sort
