package store

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/payload"
	"tandem/text"
)

// What a person decides about a tool.
const (
	// MCPReadOnly lets calls run without a confirmation, where any calls may do so.
	MCPReadOnly = "read_only"
	// MCPAsk requires a confirmation for every call, MCPNever forbids all calls.
	MCPAsk   = "ask"
	MCPNever = "never"
)

// MCPPolicyValues are the values of a policy, from the loosest to the strictest.
func MCPPolicyValues() []string { return []string{MCPReadOnly, MCPAsk, MCPNever} }

// MCPPolicy is what a person has decided about a tool.
type MCPPolicy struct {
	Workspace string
	Server    string
	Tool      string
	// User is whose policy it is; empty: that of the workspace, which an admin has set for everybody.
	User string
	// Policy applies where no rule matches. It may be empty where there are rules: then what the server says about the tool counts.
	Policy string
	Rules  []MCPRule
	// Hash is that of the definition of the tool that the person has decided about. The policy grants nothing for another definition.
	Hash  string
	SetBy string
	// TokenMadeBy is who made the token that it was set with, if it was somebody else than SetBy.
	TokenMadeBy string
	Set         int64
}

// MCPRule decides by an argument. Exactly one of Equals, Pattern, Under and Absent is set.
type MCPRule struct {
	// Argument is the name of a member of the arguments.
	Argument string `json:"argument"`
	// Equals is a text, a number, true or false.
	Equals json.RawMessage `json:"equals,omitempty"`
	// Pattern is a regular expression for the whole text.
	Pattern string `json:"pattern,omitempty"`
	// Under is a directory, or an address, that the text names something below.
	Under string `json:"under,omitempty"`
	// Absent is fulfilled when the argument is not there.
	Absent bool   `json:"absent,omitempty"`
	Policy string `json:"policy"`
}

const (
	maxMCPRules = 50
	maxMCPRule  = 500 // characters of a pattern or a directory
)

// Check refuses what cannot be a policy. The error names the field.
func (p MCPPolicy) Check() error {
	wrong := func(path string, problem text.Text) error {
		return fault.Newf(fault.Invalid, "%s: %s", path, problem).With("path", path)
	}
	switch {
	case p.Server == "" || p.Tool == "" || p.Hash == "":
		return fault.New(fault.Invalid, "a policy names a tool server, a tool and the definition that it is about")
	case p.Policy == "" && len(p.Rules) == 0:
		return wrong("policy", text.Of("is missing; use %s", strings.Join(MCPPolicyValues(), ", ")))
	case p.Policy != "" && !slices.Contains(MCPPolicyValues(), p.Policy):
		return wrong("policy", text.Of("%q is not a policy; use %s", p.Policy, strings.Join(MCPPolicyValues(), ", ")))
	case len(p.Rules) > maxMCPRules:
		return wrong("rules", text.Of("%d are too many; at most %d are taken", len(p.Rules), maxMCPRules))
	}
	for i, r := range p.Rules {
		if path, problem := r.problem(); !problem.IsZero() {
			return wrong(fmt.Sprintf("rules[%d]%s", i, path), problem)
		}
	}
	return nil
}

// problem says what is wrong with a rule, and where.
func (r MCPRule) problem() (path string, problem text.Text) {
	set := 0
	for _, is := range []bool{len(r.Equals) > 0, r.Pattern != "", r.Under != "", r.Absent} {
		if is {
			set++
		}
	}
	switch {
	case r.Argument == "":
		return ".argument", text.Of("is missing; name an argument of the tool")
	case !slices.Contains(MCPPolicyValues(), r.Policy):
		return ".policy", text.Of("use %s", strings.Join(MCPPolicyValues(), ", "))
	case set != 1:
		return "", text.Of("give exactly one of equals, pattern, under and absent")
	case len(r.Pattern) > maxMCPRule:
		return ".pattern", text.Of("is too long; %d characters are taken", maxMCPRule)
	case len(r.Under) > maxMCPRule:
		return ".under", text.Of("is too long; %d characters are taken", maxMCPRule)
	case r.Under != "" && !strings.HasPrefix(r.Under, "/") && !regexp.MustCompile(`^[a-z][a-z0-9+.-]*://[^/]+`).MatchString(r.Under):
		return ".under", text.Of("must be a directory that begins with a slash, or an address with its scheme and host")
	}
	if r.Pattern != "" {
		if _, err := regexp.Compile(r.Pattern); err != nil {
			return ".pattern", text.Of("cannot be read as a regular expression: %s", err)
		}
	}
	if len(r.Equals) > 0 {
		var v any
		if payload.Read(r.Equals, &v) != nil {
			v = nil
		}
		switch v.(type) {
		case string, json.Number, bool:
		default:
			return ".equals", text.Of("must be a text, a number, true or false")
		}
	}
	return "", text.Text{}
}

// MCPAcceptance records that a person has accepted a change of a tool, with the difference.
type MCPAcceptance struct {
	Workspace string
	Server    string
	Tool      string
	// User is for whom it was accepted; empty: for everybody.
	User string
	// Kind is added, changed or removed; Summary names the places that differ.
	Kind    string
	Summary string
	// Before and After are definitions, with their hashes; empty where there is none.
	Before     json.RawMessage
	BeforeHash string
	After      json.RawMessage
	AfterHash  string
	// By is the person, Execution the one whose question they answered, if it was one.
	By        string
	Execution string
	// TokenMadeBy is who made the token that it was accepted with, if it was somebody else than By. Of an answer to a question, the journal
	// of the execution says by which means it was given.
	TokenMadeBy string
	Accepted    int64
}

// MCPDecided is what a person decides with an acceptance.
type MCPDecided struct {
	Records []MCPAcceptance
	// Carry names the tools whose policies stay in force: a policy for the definition before a record's change applies to the definition
	// after it. An acceptance for everybody does this for all users, any other for its user.
	Carry []string
	// Policies are stored or removed, as by [MCPServers.SetPolicies].
	Policies []MCPPolicy
}
