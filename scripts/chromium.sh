#!/bin/sh
# Prints the path of a Chromium for tests. When there is none and root runs this on Debian, Debian's is installed, and fonts
# for Chinese, without which nobody can look at a picture of a page. TANDEM_CHROMIUM names another program.
set -eu

if [ -n "${TANDEM_CHROMIUM:-}" ]; then
	[ -x "$TANDEM_CHROMIUM" ] || { echo "TANDEM_CHROMIUM is $TANDEM_CHROMIUM, which is no program" >&2; exit 1; }
	echo "$TANDEM_CHROMIUM"
	exit 0
fi

find_chromium() {
	for name in chromium chromium-browser google-chrome-stable google-chrome chrome; do
		if command -v "$name" 2>/dev/null; then return 0; fi
	done
	for path in "/Applications/Chromium.app/Contents/MacOS/Chromium" "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
		if [ -x "$path" ]; then echo "$path"; return 0; fi
	done
	return 1
}

if ! program=$(find_chromium); then
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
		echo "Chromium is not installed; install it (Debian: apt-get install chromium fonts-noto-cjk) or name it in TANDEM_CHROMIUM" >&2
		exit 1
	fi
	echo "installing Chromium" >&2
	export DEBIAN_FRONTEND=noninteractive
	install() { apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core fonts-noto-cjk; }
	{ install || { apt-get update -qq && install; }; } >&2
	program=$(find_chromium) || { echo "Chromium was installed but its program was not found" >&2; exit 1; }
fi
echo "$program"
