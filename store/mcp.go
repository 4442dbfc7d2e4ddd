package store

import (
	"context"
	"encoding/json"
	"net/textproto"
	"net/url"
	"regexp"
	"strings"

	"tandem/fault"
	"tandem/identity"
)

// How tool servers are reached.
const (
	MCPStdio = "stdio" // a process of this machine
	MCPSSE   = "sse"   // HTTP with one stream of events, the older way
	MCPHTTP  = "http"  // streamable HTTP
)

// MCPServer is a tool server that an administrator has registered. Storing one does not start or reach it.
type MCPServer struct {
	Workspace   string
	ID          string
	Name        string
	Description string
	Transport   string

	// Command, Args, Dir and Env are for processes.
	Command string
	Args    []string
	Dir     string
	Env     map[string]MCPValue

	// URL and Headers are for HTTP. Credential is where the tokens of an OAuth authorization are kept, if it needs one.
	URL        string
	Headers    map[string]MCPValue
	Credential string

	// TimeoutSeconds is how long a call may be silent, IdleSeconds how long an unused connection is kept.
	TimeoutSeconds int
	IdleSeconds    int
	Enabled        bool
	Created        int64
	Updated        int64
}

// MCPValue is a text, or a field of a credential with a text before it. As JSON the first is a string.
type MCPValue struct {
	Text       string
	Credential string
	Field      string
	Prefix     string
}

type mcpReference struct {
	Credential string `json:"credential_id"`
	Field      string `json:"field"`
	Prefix     string `json:"prefix,omitempty"`
}

// MarshalJSON writes a string, or an object that names a field of a credential.
func (v MCPValue) MarshalJSON() ([]byte, error) {
	if v.Credential == "" {
		return json.Marshal(v.Text)
	}
	return json.Marshal(mcpReference{v.Credential, v.Field, v.Prefix})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *MCPValue) UnmarshalJSON(data []byte) error {
	if text := ""; json.Unmarshal(data, &text) == nil {
		*v = MCPValue{Text: text}
		return nil
	}
	var r mcpReference
	if err := json.Unmarshal(data, &r); err != nil || r.Credential == "" || r.Field == "" {
		return fault.New(fault.Invalid, "a value is a text, or an object with credential_id and field").WithCause(err)
	}
	*v = MCPValue{Credential: r.Credential, Field: r.Field, Prefix: r.Prefix}
	return nil
}

// Defaults and bounds of servers, in seconds.
const (
	DefaultMCPTimeout = 60
	DefaultMCPIdle    = 300
	MaxMCPTimeout     = 600
	MaxMCPIdle        = 24 * 60 * 60
)

// WithDefaults returns the server with defaults for empty fields.
func (s MCPServer) WithDefaults() MCPServer {
	if s.TimeoutSeconds == 0 {
		s.TimeoutSeconds = DefaultMCPTimeout
	}
	if s.IdleSeconds == 0 {
		s.IdleSeconds = DefaultMCPIdle
	}
	if s.Name == "" {
		s.Name = s.ID
	}
	return s
}

// Check refuses what cannot be a server. Drivers call it before they keep one.
func (s MCPServer) Check() error {
	// Tool ids are server/tool, split at the first slash.
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`).MatchString(s.ID) {
		return fault.Newf(fault.Invalid, "%q cannot be the id of a tool server; use up to 64 letters, digits, dots, dashes and underscores", s.ID)
	}
	if err := s.checkTransport(); err != nil {
		return err
	}
	for _, text := range append([]string{s.Command, s.Dir}, s.Args...) {
		if strings.ContainsRune(text, 0) {
			return fault.Newf(fault.Invalid, "tool server %q: command, args and dir may not hold a zero byte", s.ID)
		}
	}
	for name, v := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(v.Text+v.Prefix, 0) {
			return fault.Newf(fault.Invalid, "tool server %q: %q cannot be a variable", s.ID, name)
		}
	}
	for name, v := range s.Headers {
		if err := checkMCPHeader(name, v.Text+v.Prefix); err != nil {
			return err
		}
	}
	if s.TimeoutSeconds < 1 || s.TimeoutSeconds > MaxMCPTimeout || s.IdleSeconds < 1 || s.IdleSeconds > MaxMCPIdle {
		return fault.Newf(fault.Invalid, "tool server %q: timeout_seconds is 1 to %d, idle_seconds 1 to %d", s.ID, MaxMCPTimeout, MaxMCPIdle)
	}
	return nil
}

// checkTransport refuses a server that lacks what its transport needs, or has what only another one uses.
func (s MCPServer) checkTransport() error {
	switch s.Transport {
	case MCPStdio:
		if s.Command == "" {
			return fault.Newf(fault.Invalid, "tool server %q needs a command", s.ID)
		}
		if s.URL != "" || len(s.Headers) > 0 || s.Credential != "" {
			return fault.Newf(fault.Invalid, "tool server %q is a process and has no url, headers or credential_id; put secrets into env", s.ID)
		}
	case MCPSSE, MCPHTTP:
		u, err := url.Parse(s.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
			return fault.Newf(fault.Invalid, "tool server %q needs an http or https url without a user", s.ID)
		}
		if s.Command != "" || len(s.Args) > 0 || s.Dir != "" || len(s.Env) > 0 {
			return fault.Newf(fault.Invalid, "tool server %q is reached by url and has no command, args, dir or env", s.ID)
		}
	default:
		return fault.Newf(fault.Invalid, "tool server %q has transport %q; there are %q", s.ID, s.Transport,
			[]string{MCPStdio, MCPSSE, MCPHTTP})
	}
	return nil
}

// checkMCPHeader refuses headers that are not valid, or that belong to the protocol.
func checkMCPHeader(name, value string) error {
	if !regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$").MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
		return fault.Newf(fault.Invalid, "%q cannot be a header", name)
	}
	switch key := textproto.CanonicalMIMEHeaderKey(name); {
	case key == "Host", key == "Content-Length", key == "Content-Type", key == "Accept", key == "Connection", key == "Transfer-Encoding",
		key == "Upgrade", key == "Last-Event-Id", strings.HasPrefix(key, "Mcp-"):
		return fault.Newf(fault.Invalid, "header %q belongs to the protocol and cannot be set", name)
	}
	return nil
}

// MCPPin is a tool as a person has accepted it.
type MCPPin struct {
	// Definition is canonical JSON, Hash its SHA-256 in hex.
	Definition json.RawMessage `json:"definition"`
	Hash       string          `json:"hash"`
}

// MCPActivation says that a user uses a server, and its tools as they were then.
type MCPActivation struct {
	Workspace string
	Server    string
	User      string
	// Tools are pinned by name.
	Tools map[string]MCPPin
	// Activated is when the user began; AcceptedBy is who accepted the tools as they are pinned now, at Accepted.
	Activated  int64
	AcceptedBy string
	// TokenMadeBy is who made the token that they were accepted with, if it was somebody else than AcceptedBy.
	TokenMadeBy string
	Accepted    int64
}

// MCPRepin changes what is pinned, and leaves the other tools as they are.
type MCPRepin struct {
	Server string
	// User is whose activation is changed. Everyone changes those of all users of the server with it.
	User     string
	Everyone bool
	// Tools are the new pins; one that is nil is taken out.
	Tools       map[string]*MCPPin
	AcceptedBy  string
	TokenMadeBy string
	Accepted    int64
	// Decided is stored with it; of its records only those of tools whose pins change.
	Decided MCPDecided
}

// MCPServers keeps tool servers and who uses them.
type MCPServers interface {
	// Put makes a server or replaces it, except for the time it was made.
	Put(ctx context.Context, p identity.Principal, s MCPServer) error
	Get(ctx context.Context, p identity.Principal, id string) (MCPServer, error)
	// List returns all, in order of id.
	List(ctx context.Context, p identity.Principal) ([]MCPServer, error)
	// Delete removes a server with its activations, policies and acceptances.
	Delete(ctx context.Context, p identity.Principal, id string) error

	// Activate enters a user of a server, or replaces what was pinned, with what was decided. A server that is not there cannot be
	// activated.
	Activate(ctx context.Context, p identity.Principal, a MCPActivation, d MCPDecided) error
	// Deactivate removes an activation. Policies stay: they apply again when the user activates the same tools.
	Deactivate(ctx context.Context, p identity.Principal, server, user string) error
	Activation(ctx context.Context, p identity.Principal, server, user string) (MCPActivation, error)
	// Activations lists them by server and user. An empty server or user means all.
	Activations(ctx context.Context, p identity.Principal, server, user string) ([]MCPActivation, error)
	// Repin changes pins of an activation and returns it as it is then. What it accepts is recorded with it.
	Repin(ctx context.Context, p identity.Principal, r MCPRepin) (MCPActivation, error)
	// Acceptances returns the accepted changes of a server's tools, the newest first: those of a user and those for everybody; without a
	// user, those of all users.
	Acceptances(ctx context.Context, p identity.Principal, server, user string, limit int) ([]MCPAcceptance, error)

	// SetPolicies stores policies, all or none. Those that have neither a policy nor rules are removed.
	SetPolicies(ctx context.Context, p identity.Principal, policies ...MCPPolicy) error
	// Policies returns the policies of a server that apply to a user, in order of tool: the user's own and the workspace's. An empty tool
	// means all.
	Policies(ctx context.Context, p identity.Principal, server, tool, user string) ([]MCPPolicy, error)
	// ForgetPolicies removes all policies of a user who is removed.
	ForgetPolicies(ctx context.Context, p identity.Principal, user string) error
}
