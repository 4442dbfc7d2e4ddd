#!/bin/sh
# Prints a directory with npm packages that tests use: an installation of exactly what package-lock.json in the directory that is
# named (from the root of the repository) asks for. It is made once, outside the repository; another lock makes another one.
# TANDEM_NPM_PACKAGES names a place for them. Needs node and npm.
#
#   scripts/npm_packages.sh mcp/testdata/servers      tool servers that others wrote
#   scripts/npm_packages.sh gateway/testdata/client   clients of the Model Context Protocol that others wrote
#   scripts/npm_packages.sh app/testdata/conformance  the conformance suite of the protocol, with the Node that it wants
set -eu

lock="$(cd "$(dirname "$0")/.." && pwd)/${1:?name a directory with a package-lock.json}"
sum=$(cat "$lock/package.json" "$lock/package-lock.json" | cksum | cut -d ' ' -f 1)
dir="${TANDEM_NPM_PACKAGES:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem/npm}/$(echo "$1" | tr / -)-$sum"
if [ -f "$dir/complete" ]; then
	echo "$dir"
	exit 0
fi
if ! command -v npm >/dev/null 2>&1 || ! command -v node >/dev/null 2>&1; then
	echo "node and npm are not installed; what $1 names cannot be fetched" >&2
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
