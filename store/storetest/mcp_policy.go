package storetest

import (
	"encoding/json"
	"testing"

	"tandem/fault"
	"tandem/store"
)

// policyNames names policies: tool, user, policy and hash.
func policyNames(list []store.MCPPolicy) (names []string) {
	for _, p := range list {
		names = append(names, p.Tool+" "+p.User+" "+p.Policy+" "+p.Hash)
	}
	return names
}

func testMCPPolicies(t *testing.T, s store.Stores) {
	p := tenant(t)
	ok(t, s.MCPServers.Put(t.Context(), p, mcpServer("a")))
	policy := func(tool, user, value string) store.MCPPolicy {
		return store.MCPPolicy{Server: "a", Tool: tool, User: user, Policy: value, Hash: "h1", SetBy: "eve", TokenMadeBy: "mallory", Set: 5}
	}
	byArgument := policy("x", "ann", "")
	byArgument.Rules = []store.MCPRule{
		{Argument: "n", Equals: json.RawMessage(`5`), Policy: store.MCPReadOnly}, {Argument: "path", Under: "/srv", Policy: store.MCPAsk},
		{Argument: "q", Pattern: "a+", Policy: store.MCPNever}, {Argument: "force", Absent: true, Policy: store.MCPReadOnly},
	}
	ok(t, s.MCPServers.Activate(t.Context(), p, store.MCPActivation{Server: "a", User: "ann", AcceptedBy: "ann"},
		store.MCPDecided{Policies: []store.MCPPolicy{byArgument}}))
	ok(t, s.MCPServers.SetPolicies(t.Context(), p, policy("x", "", store.MCPNever), policy("y", "bob", store.MCPReadOnly)))
	got, err := s.MCPServers.Policies(t.Context(), p, "a", "x", "ann")
	ok(t, err)
	byArgument.Workspace = p.Workspace
	everybody := policy("x", "", store.MCPNever)
	everybody.Workspace = p.Workspace
	equal(t, "of a tool", []store.MCPPolicy{everybody, byArgument}, got)
	got, err = s.MCPServers.Policies(t.Context(), p, "a", "", "bob")
	ok(t, err)
	equal(t, "of another user", []string{"x  never h1", "y bob read_only h1"}, policyNames(got))

	for name, bad := range map[string]func(*store.MCPPolicy){
		"policy":          func(p *store.MCPPolicy) { p.Policy = "maybe" },
		"a rule's policy": func(p *store.MCPPolicy) { p.Rules = []store.MCPRule{{Argument: "a", Absent: true}} },
		"two conditions": func(p *store.MCPPolicy) {
			p.Rules = []store.MCPRule{{Argument: "a", Absent: true, Pattern: "x", Policy: "ask"}}
		},
		"no condition": func(p *store.MCPPolicy) { p.Rules = []store.MCPRule{{Argument: "a", Policy: "ask"}} },
		"pattern":      func(p *store.MCPPolicy) { p.Rules = []store.MCPRule{{Argument: "a", Pattern: "(", Policy: "ask"}} },
		"a list": func(p *store.MCPPolicy) {
			p.Rules = []store.MCPRule{{Argument: "a", Equals: json.RawMessage(`[1]`), Policy: "ask"}}
		},
		"relative":          func(p *store.MCPPolicy) { p.Rules = []store.MCPRule{{Argument: "a", Under: "srv", Policy: "ask"}} },
		"without its hash":  func(p *store.MCPPolicy) { p.Hash = "" },
		"without its tool":  func(p *store.MCPPolicy) { p.Tool = "" },
		"without argument":  func(p *store.MCPPolicy) { p.Rules = []store.MCPRule{{Absent: true, Policy: "ask"}} },
		"address, no host":  func(p *store.MCPPolicy) { p.Rules = []store.MCPRule{{Argument: "a", Under: "https://", Policy: "ask"}} },
		"too many of rules": func(p *store.MCPPolicy) { p.Rules = make([]store.MCPRule, 51) },
	} {
		one := policy("z", "ann", store.MCPAsk)
		bad(&one)
		// What is wrong with one keeps the other from being kept.
		if err := s.MCPServers.SetPolicies(t.Context(), p, policy("w", "ann", store.MCPAsk), one); fault.From(err).Code != fault.Invalid {
			t.Errorf("%s was not refused: %v", name, err)
		}
	}
	// A user who no longer uses the server comes back to the same policies.
	ok(t, s.MCPServers.Deactivate(t.Context(), p, "a", "ann"))
	ok(t, s.MCPServers.SetPolicies(t.Context(), p, policy("v", "ann", store.MCPAsk), policy("x", "", "")))
	got, err = s.MCPServers.Policies(t.Context(), p, "a", "", "ann")
	ok(t, err)
	equal(t, "changed", []string{"v ann ask h1", "x ann  h1"}, policyNames(got))
	ok(t, s.MCPServers.ForgetPolicies(t.Context(), p, "ann"))
	got, err = s.MCPServers.Policies(t.Context(), p, "a", "", "ann")
	ok(t, err)
	equal(t, "forgotten", 0, len(got))
	if err := s.MCPServers.ForgetPolicies(t.Context(), p, ""); fault.From(err).Code != fault.Invalid {
		t.Errorf("those of everybody were forgotten: %v", err)
	}
	ok(t, s.MCPServers.Delete(t.Context(), p, "a"))
	got, err = s.MCPServers.Policies(t.Context(), p, "a", "", "bob")
	ok(t, err)
	equal(t, "gone with the server", 0, len(got))
}

func testMCPAcceptances(t *testing.T, s store.Stores) {
	p := tenant(t)
	ok(t, s.MCPServers.Put(t.Context(), p, mcpServer("a")))
	pin := func(text string) store.MCPPin {
		return store.MCPPin{Definition: []byte(`"` + text + `"`), Hash: "h-" + text}
	}
	for _, user := range []string{"ann", "bob", "eve"} {
		was := "x1"
		if user == "eve" {
			was = "x0" // an older one
		}
		ok(t, s.MCPServers.Activate(t.Context(), p, store.MCPActivation{Server: "a", User: user,
			Tools: map[string]store.MCPPin{"x": pin(was), "y": pin("y")}, AcceptedBy: user},
			store.MCPDecided{Policies: []store.MCPPolicy{{Server: "a", Tool: "x", User: user,
				Policy: store.MCPReadOnly, Hash: "h-" + was}}}))
	}
	ok(t, s.MCPServers.SetPolicies(t.Context(), p, store.MCPPolicy{Server: "a", Tool: "x", Policy: store.MCPAsk, Hash: "h-x1"}))
	repin := func(user, by, before, after string, everyone bool) {
		t.Helper()
		whose := user
		if everyone {
			whose = ""
		}
		now := pin(after)
		_, err := s.MCPServers.Repin(t.Context(), p, store.MCPRepin{Server: "a", User: user, Everyone: everyone, AcceptedBy: by,
			Accepted: 7, Tools: map[string]*store.MCPPin{"x": &now},
			Decided: store.MCPDecided{Carry: []string{"x"}, Records: []store.MCPAcceptance{{Server: "a", Tool: "x", User: whose,
				Kind: "changed", Summary: before + " to " + after,
				Before: pin(before).Definition, BeforeHash: "h-" + before, After: now.Definition, AfterHash: now.Hash, By: by, Execution: "e",
				Accepted: 7}}}})
		ok(t, err)
	}
	pins := func() (list []string) {
		for _, user := range []string{"ann", "bob", "eve"} {
			a, err := s.MCPServers.Activation(t.Context(), p, "a", user)
			ok(t, err)
			policies, err := s.MCPServers.Policies(t.Context(), p, "a", "x", user)
			ok(t, err)
			list = append(list, user+" "+a.Tools["x"].Hash+" "+a.Tools["y"].Hash+" "+a.AcceptedBy, policies[0].Hash+" "+policies[1].Hash)
		}
		return list
	}
	// What a user accepts counts for that user, also if it is done twice.
	repin("ann", "ann", "x1", "x2", false)
	repin("ann", "ann", "x1", "x2", false)
	equal(t, "by a user", []string{"ann h-x2 h-y ann", "h-x1 h-x2", "bob h-x1 h-y bob", "h-x1 h-x1", "eve h-x0 h-y eve", "h-x1 h-x0"},
		pins())
	// What an admin accepts counts for everybody; policies that were set for something else stay with that.
	repin("bob", "bob", "x1", "x2", true)
	equal(t, "by an admin", []string{"ann h-x2 h-y bob", "h-x2 h-x2", "bob h-x2 h-y bob", "h-x2 h-x2", "eve h-x2 h-y bob", "h-x2 h-x0"},
		pins())

	told := func(user string) (list []string) {
		all, err := s.MCPServers.Acceptances(t.Context(), p, "a", user, 10)
		ok(t, err)
		for _, a := range all {
			list = append(list, a.User+":"+a.By+" "+a.Kind+" "+a.Summary+" "+string(a.Before)+" "+string(a.After)+" "+a.Execution)
		}
		return list
	}
	both := []string{`:bob changed x1 to x2 "x1" "x2" e`, `ann:ann changed x1 to x2 "x1" "x2" e`}
	equal(t, "the record", both, told(""))
	equal(t, "a user's", both, told("ann"))
	equal(t, "another's", both[:1], told("eve"))
}
