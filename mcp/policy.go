package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/text"
)

// Class is what a server says that its tool does.
type Class string

// The classes. Of an unclassed tool its server says nothing that counts; by the protocol's own default it may destroy.
const (
	ReadOnly    Class = "read_only"
	Additive    Class = "additive" // it changes things and destroys nothing
	Destructive Class = "destructive"
	Unclassed   Class = "unclassed"
)

// ClassOf reads what a server says. Where it contradicts itself, the worse counts.
func ClassOf(t Tool) Class {
	a := t.Annotations
	switch {
	case a.Destructive != nil && *a.Destructive:
		return Destructive
	case a.ReadOnly:
		return ReadOnly
	case a.Destructive != nil:
		return Additive
	}
	return Unclassed
}

// Decision is what happens to a call of a tool: it is made, a person is asked first, or it is refused.
type Decision string

// The decisions, from the loosest to the strictest.
const (
	// Runs: a person says that the tool only reads, so it runs wherever calls run by themselves.
	Runs Decision = "read_only"
	// Judged: its server says that it destroys nothing, which is no more than that; the judge of the call decides.
	Judged Decision = "judged"
	// Destroys: it destroys, or nobody has said that it does not; the call is of medium risk at least.
	Destroys Decision = "destructive"
	// Asks: a person is asked about every call. Refused: there is no call.
	Asks    Decision = "ask"
	Refused Decision = "never"
)

// strictness orders decisions.
func (d Decision) strictness() int {
	return slices.Index([]Decision{Runs, Judged, Destroys, Asks, Refused}, d)
}

// Stricter says that a decision is stricter than another one.
func (d Decision) Stricter(than Decision) bool { return d.strictness() > than.strictness() }

// Where a decision comes from.
const (
	FromPolicy     = "policy"           // the user's own
	FromWorkspace  = "workspace_policy" // an admin's, for everybody
	FromAnnotation = "annotation"       // the server's word
	FromNobody     = "nobody"
)

// Verdict is the decision about a call of a tool, and the reason for it.
type Verdict struct {
	Decision Decision `json:"decision"`
	From     string   `json:"from"`
	// By is who has set the policy.
	By string `json:"by,omitempty"`
	// Detail names the rule that decided, or what is unclear about the arguments.
	Detail string `json:"detail,omitempty"`
}

// decisionOf is what a policy's value means.
func decisionOf(policy string) Decision {
	switch policy {
	case store.MCPReadOnly:
		return Runs
	case store.MCPNever:
		return Refused
	}
	return Asks
}

func strictest(list ...Decision) Decision {
	return slices.MaxFunc(list, func(a, b Decision) int { return cmp.Compare(a.strictness(), b.strictness()) })
}

// Unruled decides about calls of a tool that no policy is about. What the server says of its tool can make the decision stricter, and never
// looser: if it says that the tool only reads, the call is still judged.
func Unruled(t Tool) Verdict {
	switch ClassOf(t) {
	case ReadOnly, Additive:
		return Verdict{Decision: Judged, From: FromAnnotation}
	case Destructive:
		return Verdict{Decision: Destroys, From: FromAnnotation}
	}
	return Verdict{Decision: Destroys, From: FromNobody}
}

// Decide decides about a call. Own is the user's policy, everybodys that of the workspace; each may be nil. What an admin wants asked or
// never done can be made stricter by a user, and not looser.
func Decide(t Tool, arguments json.RawMessage, own, everybodys *store.MCPPolicy) Verdict {
	mine, isMine := decideBy(t, arguments, own)
	mine.From = FromPolicy
	all, isAll := decideBy(t, arguments, everybodys)
	all.From = FromWorkspace
	switch {
	case isMine && isAll && Asks.Stricter(all.Decision):
		return mine
	case isMine && (!isAll || mine.Decision.Stricter(all.Decision)):
		return mine
	case isAll:
		return all
	}
	return Unruled(t)
}

// decideBy is what one policy says, if it says anything. A policy for another definition of the tool grants nothing, and forbids as before.
func decideBy(t Tool, arguments json.RawMessage, p *store.MCPPolicy) (Verdict, bool) {
	if p == nil {
		return Verdict{}, false
	}
	v := Verdict{By: p.SetBy}
	if p.Hash != t.Hash {
		v.Detail = "the tool has changed since the policy was set"
		switch {
		case p.Policy == store.MCPNever:
			v.Decision = Refused
		case p.Policy == store.MCPAsk, slices.ContainsFunc(p.Rules, func(r store.MCPRule) bool { return r.Policy != store.MCPReadOnly }):
			v.Decision = Asks
		default:
			return v, false
		}
		return v, true
	}
	var otherwise []Decision // what holds where no rule does
	if p.Policy != "" {
		otherwise = []Decision{decisionOf(p.Policy)}
	}
	if len(p.Rules) > 0 {
		given, unclear := readArguments(t, arguments)
		if unclear != "" {
			v.Detail = unclear
			v.Decision = strictest(append(otherwise, Asks)...)
			if slices.ContainsFunc(p.Rules, func(r store.MCPRule) bool { return r.Policy == store.MCPNever }) {
				v.Decision = Refused
			}
			return v, true
		}
		for _, r := range p.Rules {
			yes, unclear := fulfils(r, given)
			switch {
			case unclear != "":
				v.Detail = fmt.Sprintf("%s: %s", r.Argument, unclear)
				v.Decision = strictest(append(otherwise, Asks, decisionOf(r.Policy))...)
				return v, true
			case yes:
				v.Detail, v.Decision = "by the argument "+r.Argument, decisionOf(r.Policy)
				return v, true
			}
		}
	}
	if len(otherwise) == 0 {
		return v, false
	}
	v.Decision = otherwise[0]
	return v, true
}

// Standing is the decision about calls of a tool in general, without regard to their arguments.
type Standing struct {
	Verdict
	// ByArgument says that rules about arguments decide first.
	ByArgument bool
	// Own and Everybodys are the policies, nil where there is none.
	Own, Everybodys *store.MCPPolicy
}

// StandingOf returns the decision about calls of a tool in general.
func StandingOf(t Tool, own, everybodys *store.MCPPolicy) Standing {
	s := Standing{Own: own, Everybodys: everybodys}
	plain := func(p *store.MCPPolicy) *store.MCPPolicy {
		if p == nil || len(p.Rules) == 0 || p.Hash != t.Hash {
			return p
		}
		s.ByArgument = true
		if p.Policy == "" {
			return nil
		}
		without := *p
		without.Rules = nil
		return &without
	}
	own, everybodys = plain(own), plain(everybodys)
	s.Verdict = Decide(t, nil, own, everybodys)
	if everybodys != nil && everybodys.Policy == store.MCPNever && len(s.Everybodys.Rules) == 0 {
		s.ByArgument = false // no rule of a user makes that looser
	}
	return s
}

// Lapsed says that a policy is about the tool as it was: it grants nothing.
func Lapsed(t Tool, p *store.MCPPolicy) bool { return p != nil && p.Hash != t.Hash }

// Standings returns the decisions about calls of tools in general, by the names of the tools.
func (p *Pool) Standings(ctx context.Context, who identity.Principal, server string, tools []Tool) (map[string]Standing, error) {
	list, err := p.options.Servers.Policies(ctx, who, server, "", who.User)
	if err != nil {
		return nil, err
	}
	return StandingsBy(list, tools), nil
}

// StandingsBy says the same by the policies that concern a user.
func StandingsBy(list []store.MCPPolicy, tools []Tool) map[string]Standing {
	own, everybodys := map[string]*store.MCPPolicy{}, map[string]*store.MCPPolicy{}
	for i := range list {
		if list[i].User == "" {
			everybodys[list[i].Tool] = &list[i]
		} else {
			own[list[i].Tool] = &list[i]
		}
	}
	out := make(map[string]Standing, len(tools))
	for _, t := range tools {
		out[t.Name] = StandingOf(t, own[t.Name], everybodys[t.Name])
	}
	return out
}

// CheckPolicy refuses a policy that cannot be about a tool, and names the field.
func CheckPolicy(t Tool, p store.MCPPolicy) error {
	if err := p.Check(); err != nil {
		return err
	}
	known := declared(t)
	for i, r := range p.Rules {
		if known[r.Argument] {
			continue
		}
		path := fmt.Sprintf("rules[%d].argument", i)
		hint := text.Of("; the tool declares none, so no rule can go by them")
		if names := sortedNames(known); len(names) > 0 {
			hint = text.Of("; it has %q", names)
			if near := fault.Nearest(r.Argument, names); near != "" {
				hint = text.Of("; did you mean %q?", near)
			}
		}
		return fault.Newf(fault.Invalid, "%s: the tool %q declares no argument %q%s", path, t.Name, r.Argument, hint).With("path", path)
	}
	return nil
}

// policies reads what concerns a user of one tool.
func (p *Pool) policies(ctx context.Context, who identity.Principal, server, tool string) (own, everybodys *store.MCPPolicy, err error) {
	list, err := p.options.Servers.Policies(ctx, who, server, tool, who.User)
	if err != nil {
		return nil, nil, err
	}
	for i := range list {
		switch one := &list[i]; {
		case one.Tool != tool:
		case one.User == "":
			everybodys = one
		default:
			own = one
		}
	}
	return own, everybodys, nil
}

// Verdict says what a call of a tool, as the user has accepted it, meets with these arguments. The server is not reached.
func (p *Pool) Verdict(ctx context.Context, who identity.Principal, server, tool string, arguments json.RawMessage) (Verdict, error) {
	t, err := p.PinnedTool(ctx, who, server, tool)
	if err != nil {
		return Verdict{}, err
	}
	own, everybodys, err := p.policies(ctx, who, server, tool)
	if err != nil {
		return Verdict{}, err
	}
	return Decide(t, arguments, own, everybodys), nil
}

// SetPolicies keeps policies about tools as the user has accepted them: the user's own, or those of the workspace. One that says nothing
// takes the policy away. Whether the user may set those of the workspace is for the caller to know.
func (p *Pool) SetPolicies(ctx context.Context, who identity.Principal, server string, everybodys bool,
	policies map[string]store.MCPPolicy) error {
	a, err := p.activation(ctx, who, server)
	if err != nil {
		return err
	}
	list, err := p.readyPolicies(ctx, who, server, a.Tools, everybodys, "policies", policies)
	if err != nil {
		return err
	}
	return p.options.Servers.SetPolicies(ctx, who, list...)
}

// readyPolicies makes what somebody wants into what is kept, bound to the tools as they are pinned. Path is where the caller has them.
func (p *Pool) readyPolicies(ctx context.Context, who identity.Principal, server string, pins map[string]store.MCPPin, everybodys bool,
	path string, policies map[string]store.MCPPolicy) ([]store.MCPPolicy, error) {
	var list []store.MCPPolicy
	for _, name := range sortedNames(policies) {
		one := policies[name]
		one.Workspace, one.Server, one.Tool, one.User, one.SetBy, one.TokenMadeBy, one.Set = who.Workspace, server, name, who.User,
			who.User, who.TokenMadeBy(), time.Now().UnixMilli()
		if everybodys {
			one.User = ""
		}
		if one.Policy == "" && len(one.Rules) == 0 {
			list = append(list, one)
			continue
		}
		pin, ok := pins[name]
		if !ok {
			var hint text.Text
			if near := fault.Nearest(name, sortedNames(pins)); near != "" {
				hint = text.Of("; did you mean %q?", near)
			}
			return nil, fault.Newf(fault.NotFound, "%s.%s: the server %q has no tool of this name that you have accepted%s", path, name, server, hint).With("path", path+"."+name)
		}
		t, err := ReadTool(server, pin.Definition)
		if err != nil {
			return nil, fmt.Errorf("read the pin of tool %q of server %q: %w", name, server, err)
		}
		if one.Hash != "" && one.Hash != pin.Hash {
			return nil, fault.Newf(fault.Conflict, "%s.%s: the tool is not what was shown; look at it again", path, name).With("path", path+"."+name)
		}
		one.Hash = pin.Hash
		if err := CheckPolicy(t, one); err != nil {
			return nil, inPolicy(path+"."+name, err)
		}
		if !everybodys {
			if err := p.notLooser(ctx, who, one); err != nil {
				return nil, err
			}
		}
		list = append(list, one)
	}
	return list, nil
}

// inPolicy says of which tool a policy is wrong.
func inPolicy(at string, err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	path, _ := f.Details["path"].(string)
	return fault.Newf(f.Code, "%s.%s", at, text.OfError(f)).With("path", at+"."+path)
}

// notLooser refuses a user's policy that would loosen what an admin has decided. Where an admin's policy goes by arguments, calls are
// compared when they are made.
func (p *Pool) notLooser(ctx context.Context, who identity.Principal, one store.MCPPolicy) error {
	_, everybodys, err := p.policies(ctx, who, one.Server, one.Tool)
	if err != nil || everybodys == nil || everybodys.Policy == "" || everybodys.Policy == store.MCPReadOnly || len(everybodys.Rules) > 0 {
		return err
	}
	bound := decisionOf(everybodys.Policy)
	looser := one.Policy != "" && bound.Stricter(decisionOf(one.Policy)) ||
		slices.ContainsFunc(one.Rules, func(r store.MCPRule) bool { return bound.Stricter(decisionOf(r.Policy)) })
	if !looser {
		return nil
	}
	return fault.Newf(fault.Forbidden, "policies.%s: %s has set %q for everybody; your own policy can only be stricter", one.Tool, everybodys.SetBy, everybodys.Policy).With("path", "policies."+one.Tool)
}
