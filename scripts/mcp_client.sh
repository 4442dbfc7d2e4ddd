#!/bin/sh
# Prints a directory with clients of the Model Context Protocol that others wrote, for the tests of Tandem as a server: an npm
# installation of exactly what gateway/testdata/client/package-lock.json names. It is made once, outside the repository; another
# lock makes another one. TANDEM_MCP_CLIENT names a place for it. Needs node and npm.
set -eu

lock="$(cd "$(dirname "$0")/.." && pwd)/gateway/testdata/client"
sum=$(cat "$lock/package.json" "$lock/package-lock.json" | cksum | cut -d ' ' -f 1)
dir="${TANDEM_MCP_CLIENT:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem/mcp-client}/$sum"
if [ -f "$dir/complete" ]; then
	echo "$dir"
	exit 0
fi
if ! command -v npm >/dev/null 2>&1 || ! command -v node >/dev/null 2>&1; then
	echo "node and npm are not installed; the clients for tests cannot be fetched" >&2
	exit 1
fi
mkdir -p "$(dirname "$dir")"
new=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$new"' EXIT
cp "$lock/package.json" "$lock/package-lock.json" "$new"
(cd "$new" && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error) >&2
touch "$new/complete"
# Whoever was first wins; the contents are the same.
mv -T "$new" "$dir" 2>/dev/null || mv "$new" "$dir" 2>/dev/null || [ -f "$dir/complete" ]
echo "$dir"
