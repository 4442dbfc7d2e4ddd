package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tandem/api"
	"tandem/client"
	"tandem/fault"
)

// QuickAgent describes an agent by flags of a command, for a data directory that no server has open.
type QuickAgent struct {
	// Profile is the profile of the model that plans. It may be left out where there is only one.
	Profile string
	// Servers are tool servers that are registered, Commands those that are to be: command lines, or addresses.
	Servers, Commands []string
}

// Given says whether anything was described.
func (q QuickAgent) Given() bool { return q.Profile != "" || len(q.Servers) > 0 || len(q.Commands) > 0 }

const (
	// quickID is the id of the agent that is described on the spot, and quickPrefix begins the ids of its tool servers. These ids show that
	// they were made here and may be replaced. The model of the agent sees the agent's id, too.
	quickID         = "cli"
	quickName       = "Terminal agent"
	quickPrefix     = "cli-"
	quickServerName = "made by tandem agent run"
	// maxStem is how long the rest of a server's id is at most.
	maxStem = 40
)

// ChooseAgent finds the agent that a task is for: the named one, the one that is described, which is kept, or the only one there is.
// With auto it must be one whose calls of low risk run without a confirmation.
func (c *Connection) ChooseAgent(ctx context.Context, id string, quick QuickAgent, auto bool) (string, error) {
	var a api.Agent
	var err error
	switch {
	case quick.Given():
		a, err = c.keepQuick(ctx, quick, auto)
	case id != "":
		a, err = c.Agent(ctx, id)
	default:
		a, err = c.onlyAgent(ctx)
	}
	if err == nil && auto {
		err = c.CheckAuto(ctx, a)
	}
	return a.ID, err
}

// CheckAuto refuses an agent whose calls all need a confirmation of this user. Only that is a refusal; anything else went wrong.
func (c *Connection) CheckAuto(ctx context.Context, a api.Agent) error {
	if !a.AutoExecute {
		return fault.Newf(fault.Forbidden, "the agent %q does not allow calls without a confirmation; its auto_execute does", a.ID)
	}
	me, err := c.Me(ctx)
	if err != nil {
		return err
	}
	if !me.AutoExecute {
		return fault.New(fault.Forbidden, "you do not allow calls without a confirmation; you do with: tandem me --auto-execute on")
	}
	return nil
}

// onlyAgent returns the agent of a workspace that has exactly one.
func (c *Connection) onlyAgent(ctx context.Context) (api.Agent, error) {
	list, err := c.Agents(ctx, client.AgentQuery{})
	if err != nil {
		return api.Agent{}, err
	}
	switch len(list.Agents) {
	case 0:
		return api.Agent{}, fault.New(fault.NotFound, "there is no agent; keep one with: tandem agent set FILE, or describe one with --profile and --mcp")
	case 1:
		return list.Agents[0], nil
	}
	var names []string
	for _, a := range list.Agents {
		names = append(names, a.ID)
	}
	return api.Agent{}, fault.Newf(fault.Invalid, "say which agent with --agent; there are %s", strings.Join(names, ", "))
}

// keepQuick keeps the agent that is described on the spot.
func (c *Connection) keepQuick(ctx context.Context, q QuickAgent, auto bool) (api.Agent, error) {
	if !c.Local() && c.beside == nil {
		return api.Agent{}, fault.New(fault.Invalid, "an agent can be described on the spot in a data directory only; name one of the server's")
	}
	profile, err := c.onlyProfile(ctx, q.Profile)
	if err != nil {
		return api.Agent{}, err
	}
	was, err := c.Agent(ctx, quickID)
	switch {
	case err == nil && was.Name != quickName:
		return api.Agent{}, fault.Newf(fault.Conflict, "there is an agent %q already that somebody has kept; use it with --agent %s, or keep it under another id", quickID, quickID)
	case err != nil && fault.CodeOf(err) != fault.NotFound:
		return api.Agent{}, err
	}
	servers := slices.Clone(q.Servers)
	for _, command := range q.Commands {
		id, err := c.keepServer(ctx, command, servers)
		if err != nil {
			return api.Agent{}, err
		}
		servers = append(servers, id)
	}
	return c.PutAgent(ctx, api.Agent{
		ID: quickID, Name: quickName, LLMProfile: profile, MCPServers: slices.Compact(slices.Sorted(slices.Values(servers))),
		AutoExecute: auto,
	}, 0)
}

// onlyProfile is the named profile or, without a name, the one that somebody has kept.
func (c *Connection) onlyProfile(ctx context.Context, name string) (string, error) {
	if name != "" {
		return name, nil
	}
	list, err := c.Profiles(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	for _, p := range list.Profiles {
		if p.ID != demoProfile { // it knows the examples and no agent
			names = append(names, p.ID)
		}
	}
	switch len(names) {
	case 0:
		return "", fault.New(fault.Invalid, "an agent needs a model that plans; keep a profile with: tandem profiles set FILE, and name it with --profile")
	case 1:
		return names[0], nil
	}
	return "", fault.Newf(fault.Invalid, "say with --profile which model plans; there are %s", strings.Join(names, ", "))
}

// keepServer registers the tool server of a command line or an address and activates it for this user. One that is there with the same
// is left as it is, with the tools that were accepted.
func (c *Connection) keepServer(ctx context.Context, command string, taken []string) (string, error) {
	s, err := quickServer(command, taken)
	if err != nil {
		return "", err
	}
	was, err := c.MCPServer(ctx, s.ID)
	switch {
	case err == nil && was.Name != quickServerName:
		return "", fault.Newf(fault.Conflict, "there is a tool server %q already that somebody has registered; use it with --mcp-server %s", s.ID, s.ID)
	case err != nil && fault.CodeOf(err) != fault.NotFound:
		return "", err
	}
	fresh := err != nil
	same := !fresh && was.Transport == s.Transport && was.Command == s.Command && slices.Equal(was.Args, s.Args) && was.Dir == s.Dir &&
		was.URL == s.URL && !was.Disabled
	if !same {
		if was, err = c.PutMCPServer(ctx, s); err != nil {
			return "", err
		}
	}
	if !was.Activated {
		_, err := c.ActivateMCPServer(ctx, s.ID, api.MCPActivate{})
		if err != nil {
			err = fmt.Errorf("activate the tool server of --mcp %q: %w", command, err)
			if fresh { // nothing can use it
				err = errors.Join(err, c.DeleteMCPServer(ctx, s.ID))
			}
			return "", err
		}
	}
	return s.ID, nil
}

// quickServer describes the tool server of a command line or an address. Those that are taken have other ids.
func quickServer(command string, taken []string) (api.MCPServer, error) {
	s := api.MCPServer{Name: quickServerName}
	stem := ""
	if u, err := url.Parse(command); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		s.Transport, s.URL, stem = "http", command, u.Hostname()
	} else {
		words, err := splitWords(command)
		if err != nil {
			return s, err
		}
		dir, err := os.Getwd() // so that a path means what it means to the person who writes it
		if err != nil {
			return s, fmt.Errorf("find the working directory: %w", err)
		}
		s.Transport, s.Command, s.Args, s.Dir, stem = "stdio", words[0], words[1:], dir, stemOf(words)
	}
	stem = strings.Trim(notInID.ReplaceAllString(stem, "-"), "-.")
	s.ID = quickPrefix + cmp.Or(stem[:min(len(stem), maxStem)], "tools")
	for n, id := 2, s.ID; slices.Contains(taken, s.ID); n++ {
		s.ID = fmt.Sprintf("%s-%d", id, n)
	}
	return s, nil
}

// notInID is what the id of a tool server cannot have. read-only
var notInID = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// stemOf is what a command line is about: the program or, where a program runs another one, that.
func stemOf(words []string) string {
	name := filepath.Base(words[0])
	runners := []string{"npx", "bunx", "uvx", "pipx", "node", "bun", "deno", "python", "python3", "npm", "pnpm", "yarn", "uv",
		"go", "env", "docker", "podman"}
	if slices.Contains(runners, name) {
		for _, w := range words[1:] {
			if strings.HasPrefix(w, "-") || slices.Contains([]string{"run", "exec", "dlx", "x"}, w) {
				continue
			}
			name = telling(filepath.ToSlash(w))
			break
		}
	}
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	for _, end := range []string{".js", ".mjs", ".cjs", ".ts", ".py"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}

// telling is the part of a path that says what it is: of tools/dist/index.js that is tools. A package may have a scope and a version, too:
// @scope/name@version.
func telling(text string) string {
	for text != "." && text != "/" {
		base := path.Base(text)
		name := strings.TrimSuffix(base, path.Ext(base))
		if !slices.Contains([]string{"index", "main", "server", "cli", "dist", "build", "out", "bin", "lib", "src", ".", ".."}, name) {
			return base
		}
		text = path.Dir(text)
	}
	return ""
}

// splitWords splits a command line as a shell does, without its variables and wildcards.
func splitWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	in, some := rune(0), false
	runes := []rune(text)
	for n := 0; n < len(runes); n++ {
		switch r := runes[n]; {
		case in == '\'' && r != '\'', in == '"' && r != '"' && r != '\\':
			word.WriteRune(r)
		case r == '\\' && n+1 < len(runes):
			n++
			word.WriteRune(runes[n])
			some = true
		case in == 0 && (r == '\'' || r == '"'):
			in, some = r, true
		case in != 0 && r == in:
			in = 0
		case r == ' ' || r == '\t' || r == '\n':
			if some || word.Len() > 0 {
				words = append(words, word.String())
			}
			word.Reset()
			some = false
		default:
			word.WriteRune(r)
		}
	}
	if in != 0 {
		return nil, fault.Newf(fault.Invalid, "--mcp %q: the quote %c has no end", text, in)
	}
	if some || word.Len() > 0 {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, fault.Newf(fault.Invalid, "--mcp %q: a command line, or an address that begins with https:// was expected", text)
	}
	return words, nil
}
