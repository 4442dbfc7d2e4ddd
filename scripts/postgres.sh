#!/bin/sh
# A throw-away PostgreSQL for tests, listening on a unix socket only.
#
#   scripts/postgres.sh start DIR         make a cluster in DIR (made if missing), or start the one that is there, and print its URL
#   scripts/postgres.sh stop DIR [MODE]   stop it, at once or as pg_ctl's MODE says; DIR is the caller's to remove
#   scripts/postgres.sh copy DIR FROM     make a standby in DIR of the cluster that runs in FROM, start it, and print its URL
#   scripts/postgres.sh promote DIR       make a primary of a standby
#
# PostgreSQL refuses to run as root, so root runs it as the user "postgres". When it is not installed and root runs this
# on Debian, it is installed. Nothing is durable, since the cluster is for tests; with DURABLE=1 everything is, which is for measurements.
#
# A new cluster takes a second of work to make. It is made once for each version and kept, packed, in the user's cache
# directory; all others are copies of it.
set -eu

usage() { echo "usage: $0 start DIR | stop DIR [MODE] | copy DIR FROM | promote DIR" >&2; exit 2; }
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

# launch starts the cluster that is there, and prints its URL.
launch() {
	settings="-c fsync=off -c full_page_writes=off -c shared_buffers=32MB -c max_wal_size=64MB -c min_wal_size=32MB"
	if [ "${DURABLE:-}" = 1 ]; then settings="-c max_wal_size=1GB"; fi
	as_owner "$bin/pg_ctl" -D "$dir/data" -l "$dir/data/server.log" -s -w -t 60 \
		-o "-k '$dir' -c listen_addresses= -c max_connections=120 $settings" start >&2 ||
		{ cat "$dir/data/server.log" >&2; exit 1; }
	echo "postgres://tandem@/postgres?host=$dir"
}

# prepare makes the directory one that the owner has, and a socket fits in.
prepare() {
	[ "$(id -u)" -ne 0 ] || chown "$owner" "$dir"
	chmod 700 "$dir"
	if [ "${#dir}" -gt 80 ]; then
		echo "the path $dir is too long for a unix socket; use a shorter one" >&2
		exit 1
	fi
}

# fresh puts a new cluster into the directory. What is kept has a name that follows from how it was made.
fresh() {
	set -- -U tandem -A trust -E UTF8 --locale=C --no-sync
	kept=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/tandem/postgres/$({ "$bin/initdb" --version; echo "$@"; } | cksum | tr ' ' '-').tar
	if [ -s "$kept" ] && as_owner tar -x -C "$dir" -f - <"$kept"; then return 0; fi
	rm -rf "$dir/data"
	as_owner "$bin/initdb" -D "$dir/data" "$@" >"$dir/initdb.log" 2>&1 || { cat "$dir/initdb.log" >&2; exit 1; }
	# Several may come here at once: each finds the whole file or makes its own. A cache that cannot be written only saves nothing.
	if mkdir -p "$(dirname "$kept")" 2>/dev/null && made=$(mktemp "$kept.XXXXXX" 2>/dev/null); then
		if as_owner tar -c -C "$dir" -f - data >"$made"; then mv "$made" "$kept"; else rm -f "$made"; fi
	fi
}

case $command in
start)
	prepare
	[ -e "$dir/data/PG_VERSION" ] || fresh
	launch
	;;
stop)
	as_owner "$bin/pg_ctl" -D "$dir/data" -s -m "${3:-immediate}" -w stop >&2
	;;
copy)
	[ $# -eq 3 ] || usage
	prepare
	as_owner "$bin/pg_basebackup" -h "$3" -U tandem -D "$dir/data" -R -X stream --checkpoint=fast --no-sync >&2
	launch
	;;
promote)
	as_owner "$bin/pg_ctl" -D "$dir/data" -s -w -t 60 promote >&2
	;;
*) usage ;;
esac
