package app

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"tandem/builtin/code"
	"tandem/builtin/web"
	"tandem/fault"
	"tandem/server"
	"tandem/text"
)

// interpreters are the programs that scripts are written for, each under the names it is installed by.
func interpreters() map[string][]string {
	return map[string][]string{"bash": {"bash"}, "sh": {"sh"}, "python": {"python3", "python"},
		"node": {"node", "nodejs"}, "pwsh": {"pwsh"}}
}

// ParseScripts reads what an operator allows of host processes. Both lists are separated by commas: interpreters as name or
// name=path, all that are installed when it is empty, none for "none"; commands as path or name=path.
func ParseScripts(allowedInterpreters, commands string) (*code.Scripts, error) {
	s := &code.Scripts{Interpreters: map[string]string{}, Commands: map[string]string{}}
	known := interpreters()
	switch strings.TrimSpace(allowedInterpreters) {
	case "":
		for name, programs := range known { // order does not matter: one entry per name
			if path := installed(programs); path != "" {
				s.Interpreters[name] = path
			}
		}
	case "none":
	default:
		for _, item := range listed(allowedInterpreters) {
			name, path, given := strings.Cut(item, "=")
			programs, ok := known[name]
			if !ok {
				return nil, fault.Newf(fault.Invalid, "interpreter %q is not known; choose bash, sh, python, node or pwsh, or none", name)
			}
			if !given {
				path = installed(programs)
			}
			if err := checkProgram(text.Of("interpreter"), name, path); err != nil {
				return nil, err
			}
			s.Interpreters[name] = path
		}
	}
	for _, item := range listed(commands) {
		name, path, given := strings.Cut(item, "=")
		if !given {
			name, path = filepath.Base(item), item
		}
		if err := checkProgram(text.Of("command"), name, path); err != nil {
			return nil, err
		}
		if _, twice := s.Commands[name]; twice {
			return nil, fault.Newf(fault.Invalid, "command %q is given twice; name one of them with name=path", name)
		}
		s.Commands[name] = path
	}
	return s, nil
}

func listed(text string) []string {
	var list []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// checkProgram refuses a path that cannot be run, or whose meaning depends on the working directory.
func checkProgram(what text.Text, name, path string) error {
	switch info, err := os.Stat(path); {
	case path == "":
		return fault.Newf(fault.Invalid, "%s %q is not installed; give its path with %s=PATH", what, name, name)
	case !filepath.IsAbs(path):
		return fault.Newf(fault.Invalid, "%s %q: the path %q must be absolute", what, name, path)
	case err != nil || info.IsDir() || info.Mode().Perm()&0o111 == 0:
		return fault.Newf(fault.Invalid, "%s %q: %q is not a program that can be run", what, name, path)
	}
	return nil
}

// installed finds a program, first where scripts find theirs.
func installed(names []string) string {
	for _, name := range names {
		for dir := range strings.SplitSeq(code.ScriptPath, ":") {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode().Perm()&0o111 != 0 {
				return path
			}
		}
		if path, err := exec.LookPath(name); err == nil && filepath.IsAbs(path) {
			return path
		}
	}
	return ""
}

// scripts are the scripts of the options, with the files of this data directory.
func (o *Options) scripts() *code.Scripts {
	if o.Scripts == nil {
		return nil
	}
	s := *o.Scripts
	s.Files = filepath.Join(o.Dir, "files")
	return &s
}

// callbacks makes the addresses that services call back under.
func (i *Instance) callbacks(base string) web.Callbacks {
	if base == "" {
		return nil
	}
	return func(c web.Callback) (string, error) {
		ring, err := i.Keyring()
		if err != nil {
			return "", err
		}
		return server.CallbackURL(base, ring, server.Callback(c))
	}
}

// checkPublicURL reads the address under which services reach a server.
func checkPublicURL(text string) (*url.URL, error) {
	u := serverURL(text)
	if u == nil {
		return nil, fault.Newf(fault.Invalid, "the public URL %q is not an address such as https://tandem.example.com", text)
	}
	return u, nil
}

// checkPeerURL refuses an address under which no other server could reach this one. The error does not repeat the address: it may have a
// password in it.
func checkPeerURL(text string) error {
	if text != "" && serverURL(text) == nil {
		return fault.New(fault.Invalid, "the address in --peer-url (TANDEM_PEER_URL) is not one such as http://10.0.0.5:8080, without a user, a password or a query")
	}
	return nil
}

// serverURL reads the address of a server; nil: it is not one.
func serverURL(text string) *url.URL {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.ForceQuery ||
		u.Fragment != "" || u.User != nil {
		return nil
	}
	return u
}
