#!/bin/sh
# A throw-away PostgreSQL for tests, listening on a unix socket only.
#
#   scripts/postgres.sh start DIR         make a cluster in DIR (made if missing), or start the one that is there, and print its URL
#   scripts/postgres.sh stop DIR [MODE]   stop it, at once or as pg_ctl's MODE says; DIR is the caller's to remove
#
# PostgreSQL refuses to run as root, so root runs it as the user "postgres". When it is not installed and root runs this
# on Debian, it is installed. Nothing is durable: the cluster is for tests.
set -eu

usage() { echo "usage: $0 start DIR | stop DIR [MODE]" >&2; exit 2; }
[ $# -eq 2 ] || [ $# -eq 3 ] || usage
command=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd)

# The newest version that is installed, or whatever the path has.
find_bin() {
	for d in $(ls -d /usr/lib/postgresql/*/bin /usr/local/pgsql/bin /opt/homebrew/opt/postgresql*/bin 2>/dev/null | sort -V -r); do
		if [ -x "$d/initdb" ] && [ -x "$d/postgres" ]; then echo "$d"; return 0; fi
	done
	if command -v initdb >/dev/null 2>&1 && command -v pg_ctl >/dev/null 2>&1; then dirname "$(command -v initdb)"; return 0; fi
	return 1
}

if ! bin=$(find_bin); then
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
		echo "PostgreSQL is not installed; install it (Debian: apt-get install postgresql)" >&2
		exit 1
	fi
	echo "installing PostgreSQL" >&2
	export DEBIAN_FRONTEND=noninteractive
	# No cluster of the system's own is wanted.
	if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
		mkdir -p /etc/postgresql-common
		echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
	fi
	{ apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold postgresql ||
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold postgresql; }; } >&2
	bin=$(find_bin) || { echo "PostgreSQL was installed but its programs were not found" >&2; exit 1; }
fi

# as_owner runs a command as somebody who is not root, from a directory everybody may stand in.
if [ "$(id -u)" -eq 0 ]; then
	owner=postgres
	id "$owner" >/dev/null 2>&1 || useradd --system --no-create-home "$owner"
	as_owner() { (cd / && if command -v runuser >/dev/null 2>&1; then runuser -u "$owner" -- "$@"; else su -s /bin/sh "$owner" -c '"$0" "$@"' -- "$@"; fi); }
else
	owner=$(id -un)
	as_owner() { (cd / && "$@"); }
fi

case $command in
start)
	[ "$(id -u)" -ne 0 ] || chown "$owner" "$dir"
	chmod 700 "$dir"
	if [ "${#dir}" -gt 80 ]; then
		echo "the path $dir is too long for a unix socket; use a shorter one" >&2
		exit 1
	fi
	[ -e "$dir/data/PG_VERSION" ] || as_owner "$bin/initdb" -D "$dir/data" -U tandem -A trust -E UTF8 --locale=C --no-sync >"$dir/initdb.log" 2>&1 ||
		{ cat "$dir/initdb.log" >&2; exit 1; }
	as_owner "$bin/pg_ctl" -D "$dir/data" -l "$dir/data/server.log" -s -w -t 60 \
		-o "-k '$dir' -c listen_addresses= -c fsync=off -c full_page_writes=off -c max_connections=50 -c shared_buffers=32MB -c max_wal_size=64MB -c min_wal_size=32MB" start >&2 ||
		{ cat "$dir/data/server.log" >&2; exit 1; }
	echo "postgres://tandem@/postgres?host=$dir"
	;;
stop)
	as_owner "$bin/pg_ctl" -D "$dir/data" -s -m "${3:-immediate}" -w stop >&2
	;;
*) usage ;;
esac
