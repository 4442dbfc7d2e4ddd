#!/bin/sh
# Measures the figures of docs/scale.md one after the other and prints them.
#
#   scripts/figures.sh [NAME...]   all, or those that are named: step, waiting, api, chain, peers, million
#
# million is measured only where it is named, since it takes long: 100,000 and 1,000,000 executions that wait and are woken in turns. PostgreSQL and Temporal are
# started for it and stopped at the end; everything is durable. It uses bin/tandem (make build) and, for peers, bin/bench-peers (make bench-peers builds it).
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
tandem=${TANDEM:-$root/bin/tandem}
peers=${PEERS:-$root/bin/bench-peers}
[ -x "$tandem" ] || { echo "$tandem is missing; run make build" >&2; exit 1; }
[ $# -gt 0 ] || set -- step waiting api chain peers

scratch=$(mktemp -d "${TMPDIR:-/tmp}/figures.XXXXXX")
chmod 711 "$scratch" # PostgreSQL is run by another user
database= temporal=
# Not named TANDEM_DATABASE here: what is measured on SQLite must not find it.
unset TANDEM_DATABASE TANDEM_ENGINE
end() {
	[ -z "$temporal" ] || "$root/scripts/temporal.sh" stop "$scratch/temporal" || true
	[ -z "$database" ] || "$root/scripts/postgres.sh" stop "$scratch/pg" fast || true
	rm -rf "$scratch"
}
trap end EXIT
trap 'exit 130' INT TERM

export DURABLE=1
postgresql() { [ -n "$database" ] || database=$("$root/scripts/postgres.sh" start "$scratch/pg"); }
engine() { [ -n "$temporal" ] || temporal=$("$root/scripts/temporal.sh" start "$scratch/temporal"); }

# say names what is measured, with the time and the load of the machine.
say() { printf '\n== %s (%s, load %s)\n' "$*" "$(date -u +%H:%M:%S)" "$(cut -d' ' -f1 /proc/loadavg 2>/dev/null || echo unknown)"; }
# quietly keeps what a command says besides its figures for when it fails.
quietly() { "$@" 2>"$scratch/said" || { cat "$scratch/said" >&2; exit 1; }; }
bench() { quietly "$tandem" bench "$@" --data "$scratch/data"; }

for name in "$@"; do
	case $name in
	step)
		say "a step on SQLite"
		bench --quick --concurrency 1,50
		postgresql
		say "a step on PostgreSQL"
		bench --quick --concurrency 1,50 --database "$database"
		;;
	waiting)
		say "20,000 executions that wait, and are woken, on SQLite"
		bench scale --parked 20000 --phases park,wake
		postgresql
		say "20,000 executions that wait, and are woken, on PostgreSQL"
		bench scale --parked 20000 --phases park,wake --database "$database"
		engine
		say "1,000 of them on Temporal"
		bytes() { cat "$scratch"/temporal/temporal.db* | wc -c; }
		before=$(bytes)
		bench scale --parked 1000 --phases park --database "$database" --engine temporal --temporal-address "$temporal"
		echo "Temporal keeps $((($(bytes) - before) / 1000)) bytes of each that waits"
		bench scale --parked 1000 --phases wake --database "$database" --engine temporal --temporal-address "$temporal"
		;;
	api)
		say "starts and readers on SQLite, and an execution that has ended on disk"
		bench api --rounds 3 --executions 20000 --clients 50 --requests execute,stream
		postgresql
		say "the same on PostgreSQL"
		bench api --rounds 3 --executions 20000 --clients 50 --requests execute,stream --database "$database"
		engine
		say "the same on Temporal"
		bench api --rounds 3 --executions 1000 --clients 10 --requests execute,stream --database "$database" --engine temporal --temporal-address "$temporal"
		;;
	chain)
		say "a step on each host, and by hand with Temporal's SDK"
		(cd "$root" && "${GO:-go}" test -run '^$' -bench Chain -benchtime 2x -timeout 30m ./host/temporal)
		;;
	peers)
		postgresql
		say "beside DBOS on PostgreSQL"
		quietly "$peers" -peers dbos -parked 2000 -scratch "$scratch" -database "$database"
		;;
	million)
		say "1,000,000 executions that wait, and are woken in turns with 100,000 others, on SQLite"
		bench scale --parked 1000000 --beside 100000 --phases park,wake
		;;
	*)
		echo "$name is not known; there are step, waiting, api, chain, peers, million" >&2
		exit 2
		;;
	esac
done
