package dify

import (
	"regexp"
	"slices"
	"strings"
)

// imports are the lines of a program in Python that import modules. read-only
var imports = regexp.MustCompile(`(?m)^[ \t]*(?:import[ \t]+([\w., \t]+)|from[ \t]+([\w.]+)[ \t]+import\b)`)

// outside are modules that the sandbox has and that reach what it does not have: files, processes, a network. read-only
var outside = []string{"ftplib", "http", "multiprocessing", "os", "pathlib", "shutil", "smtplib", "socket", "ssl", "subprocess", "urllib"}

// modules are what a program in Python imports: those that do not come with Python, which the sandbox does not have, and those
// that reach outside of it.
func modules(source string) (absent, reaching []string) {
	standard := strings.Fields(standardModules)
	for _, found := range imports.FindAllStringSubmatch(source, -1) {
		for part := range strings.SplitSeq(found[1]+found[2], ",") {
			words := strings.Fields(part)
			if len(words) == 0 {
				continue
			}
			name, _, _ := strings.Cut(words[0], ".")
			switch {
			case name == "":
			case !slices.Contains(standard, name) && !slices.Contains(absent, name):
				absent = append(absent, name)
			case slices.Contains(outside, name) && !slices.Contains(reaching, name) && words[0] != "urllib.parse":
				reaching = append(reaching, name)
			}
		}
	}
	return absent, reaching
}

// standardModules are those that come with Python.
const standardModules = `
	abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect builtins bz2 cProfile
	calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall concurrent configparser contextlib
	contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest email encodings
	ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext
	glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp importlib inspect io ipaddress itertools json
	keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt
	multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle
	pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc
	pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex
	shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics
	string stringprep struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap this
	threading time timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata
	unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport
	zlib zoneinfo
`
