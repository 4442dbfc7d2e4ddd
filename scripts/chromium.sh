#!/bin/sh
# Prints the path of a Chromium for tests. The one without windows takes a quarter less of the processor: when it is not there
# and root runs this on Debian, Debian's is installed, and fonts for Chinese, without which nobody can look at a picture of a page.
# TANDEM_CHROMIUM names another program.
set -eu

if [ -n "${TANDEM_CHROMIUM:-}" ]; then
	[ -x "$TANDEM_CHROMIUM" ] || { echo "TANDEM_CHROMIUM names $TANDEM_CHROMIUM, which is not a program" >&2; exit 1; }
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

# install_chromium installs a package with a browser. Several may come here at once, and apt-get serves one at a time.
install_chromium() {
	export DEBIAN_FRONTEND=noninteractive
	install() { apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends "$1" fonts-dejavu-core fonts-noto-cjk; }
	{ install "$1" || { apt-get -o DPkg::Lock::Timeout=600 update -qq && install "$1"; }; } >&2
}

shell=chromium-headless-shell
if program=$(command -v "$shell"); then echo "$program"; exit 0; fi
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing $shell" >&2
	if install_chromium "$shell" && command -v "$shell"; then exit 0; fi
	echo "$shell cannot be installed" >&2 # an older Debian does not have it
	if find_chromium; then exit 0; fi
	install_chromium chromium
fi
find_chromium || {
	echo "Chromium is not installed; install it (Debian: apt-get install $shell fonts-noto-cjk) or name it in TANDEM_CHROMIUM" >&2
	exit 1
}
