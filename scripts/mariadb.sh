#!/bin/sh
# A throw-away MariaDB for tests, listening on a unix socket and on a port of loopback that the system chooses.
#
#   scripts/mariadb.sh start DIR   make a database in DIR (made if missing) and print its address: user@tcp(127.0.0.1:port)/tandem
#   scripts/mariadb.sh stop DIR    stop it; DIR is the caller's to remove
#
# MariaDB refuses to run as root, so root runs it as the user "mysql". When it is not installed and root runs this on
# Debian, it is installed. Nothing is durable: the database is for tests.
set -eu

usage() { echo "usage: $0 start|stop DIR" >&2; exit 2; }
[ $# -eq 2 ] || usage
command=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd)
PATH=$PATH:/usr/sbin:/usr/local/mysql/bin
export PATH

have() { command -v mariadbd >/dev/null 2>&1 && command -v mariadb-install-db >/dev/null 2>&1; }

if ! have; then
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
		echo "MariaDB is not installed; install it (Debian: apt-get install mariadb-server)" >&2
		exit 1
	fi
	echo "installing MariaDB" >&2
	export DEBIAN_FRONTEND=noninteractive
	# No server of the system's own is wanted: 101 tells the packages not to start one.
	policy=/usr/sbin/policy-rc.d
	if [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod 755 "$policy"
		trap 'rm -f "$policy"' EXIT
	fi
	{ apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold mariadb-server ||
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold mariadb-server; }; } >&2
	have || { echo "MariaDB was installed but its programs were not found" >&2; exit 1; }
fi

if [ "$(id -u)" -eq 0 ]; then
	owner=mysql
	id "$owner" >/dev/null 2>&1 || useradd --system --no-create-home "$owner"
	as_owner() { (cd / && if command -v runuser >/dev/null 2>&1; then runuser -u "$owner" -- "$@"; else su -s /bin/sh "$owner" -c '"$0" "$@"' -- "$@"; fi); }
else
	owner=$(id -un)
	as_owner() { (cd / && "$@"); }
fi

# client runs SQL over the socket.
client() { as_owner mariadb --no-defaults --socket="$dir/sock" -u root -N -B -e "$1"; }

case $command in
start)
	[ "$(id -u)" -ne 0 ] || chown "$owner" "$dir"
	chmod 700 "$dir"
	if [ "${#dir}" -gt 80 ]; then
		echo "the path $dir is too long for a unix socket; use a shorter one" >&2
		exit 1
	fi
	as_owner mariadb-install-db --no-defaults --datadir="$dir/data" --auth-root-authentication-method=normal \
		--skip-test-db --innodb-log-file-size=8M >"$dir/install.log" 2>&1 || { cat "$dir/install.log" >&2; exit 1; }
	# Two servers may look for a free port at the same time, so a start that loses is made again.
	tries=0
	while :; do
		port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 12000))
		: >"$dir/server.log"
		[ "$(id -u)" -ne 0 ] || chown "$owner" "$dir/server.log"
		as_owner sh -c 'exec setsid nohup "$@" </dev/null >/dev/null 2>&1 & echo $!' sh \
			mariadbd --no-defaults --datadir="$dir/data" --socket="$dir/sock" --pid-file="$dir/pid" \
			--bind-address=127.0.0.1 --port="$port" --log-error="$dir/server.log" --max-connections=60 \
			--innodb-flush-log-at-trx-commit=0 --sync-binlog=0 --innodb-log-file-size=8M --innodb-buffer-pool-size=32M \
			--innodb-lock-wait-timeout=20 --performance-schema=OFF --skip-name-resolve \
			--character-set-server=utf8mb4 --skip-log-bin >"$dir/starting"
		starting=$(cat "$dir/starting")
		waited=0
		until client "select 1" >/dev/null 2>&1; do
			waited=$((waited + 1))
			if ! kill -0 "$starting" 2>/dev/null || [ "$waited" -gt 300 ]; then
				break
			fi
			sleep 0.2
		done
		if client "select 1" >/dev/null 2>&1; then break; fi
		tries=$((tries + 1))
		if [ "$tries" -ge 5 ]; then
			cat "$dir/server.log" >&2
			exit 1
		fi
	done
	client "create database tandem character set utf8mb4; create user 'tandem'@'127.0.0.1' identified by 'tandem'; grant all on *.* to 'tandem'@'127.0.0.1' with grant option"
	echo "tandem:tandem@tcp(127.0.0.1:$port)/tandem"
	;;
stop)
	as_owner mariadb-admin --no-defaults --socket="$dir/sock" -u root shutdown >&2
	;;
*) usage ;;
esac
