#!/bin/sh
# A Temporal server for tests, listening on loopback only, with its state in one file. It is built from Go modules alone.
#
#   scripts/temporal.sh build             build it, unless the cache has it, and print where it is
#   scripts/temporal.sh start DIR [PORT]  start it on the state in DIR (made if missing) and print its address
#   scripts/temporal.sh stop DIR          stop it; DIR is the caller's to remove
#   scripts/temporal.sh kill DIR          stop it as a crash would
#
# Stop and kill fail, and print its log, when it has died by itself before.
#
# The sources are in scripts/temporal, a module of its own. The first build takes minutes; what it makes is kept in the user's
# cache directory under a name that follows from those sources and the version of Go. A server that is started again on the same
# DIR and PORT goes on where it was.
set -eu

usage() { echo "usage: $0 build | start DIR [PORT] | stop DIR | kill DIR" >&2; exit 2; }
[ $# -ge 1 ] || usage
command=$1
source=$(cd "$(dirname "$0")/temporal" && pwd)
go=${GO:-go}

build() {
	key=$({ "$go" env GOVERSION GOOS GOARCH; cat "$source/go.mod" "$source/go.sum" "$source"/*.go; } | cksum | tr ' ' '-')
	cache=${XDG_CACHE_HOME:-$HOME/.cache}/tandem/temporal/$key
	server=$cache/temporal
	if [ -x "$server" ]; then return 0; fi
	mkdir -p "$cache"
	echo "building a Temporal server for the tests, once; this takes minutes" >&2
	# Several may come here at once: one builds, the others wait for it. Where there is no flock each makes its own.
	exec 9>"$cache/lock"
	if command -v flock >/dev/null 2>&1; then flock 9; fi
	if [ -x "$server" ]; then exec 9>&-; return 0; fi
	made=$(mktemp "$cache/building.XXXXXX")
	(cd "$source" && CGO_ENABLED=0 GOFLAGS= "$go" build -trimpath -buildvcs=false -ldflags=-w -o "$made" .) >&2 || { rm -f "$made"; exit 1; }
	chmod 755 "$made"
	mv "$made" "$server"
	exec 9>&-
}

# launch starts it in $dir on a port and returns when it answers, or fails when it does not.
launch() {
	rm -f "$dir/ready"
	nohup "$server" -file "$dir/temporal.db" -port "$1" -ready "$dir/ready" </dev/null >"$dir/server.log" 2>&1 &
	echo $! >"$dir/pid"
	waited=0
	until [ -s "$dir/ready" ]; do
		waited=$((waited + 1))
		if ! kill -0 "$(cat "$dir/pid")" 2>/dev/null || [ "$waited" -gt 1200 ]; then
			kill -9 "$(cat "$dir/pid")" 2>/dev/null || true
			return 1
		fi
		sleep 0.1
	done
}

case $command in
build)
	[ $# -eq 1 ] || usage
	build
	echo "$server"
	;;
start)
	[ $# -eq 2 ] || [ $# -eq 3 ] || usage
	build
	mkdir -p "$2"
	dir=$(cd "$2" && pwd)
	# A port that was free may be taken when the server wants it. It ends then, and others are tried.
	tries=1
	until launch "${3:-0}"; do
		if [ "$tries" -eq 3 ]; then
			echo "the Temporal server did not start" >&2
			cat "$dir/server.log" >&2
			exit 1
		fi
		tries=$((tries + 1))
	done
	cat "$dir/ready"
	;;
stop | kill)
	[ $# -eq 2 ] || usage
	dir=$(cd "$2" && pwd)
	pid=$(cat "$dir/pid")
	if ! kill -0 "$pid" 2>/dev/null; then
		echo "the Temporal server has died by itself" >&2
		cat "$dir/server.log" >&2
		exit 1
	fi
	if [ "$command" = kill ]; then kill -9 "$pid" 2>/dev/null || true; else kill "$pid" 2>/dev/null || true; fi
	waited=0
	while kill -0 "$pid" 2>/dev/null; do
		waited=$((waited + 1))
		if [ "$waited" -gt 300 ]; then kill -9 "$pid" 2>/dev/null || true; fi
		sleep 0.1
	done
	rm -f "$dir/pid"
	;;
*) usage ;;
esac
