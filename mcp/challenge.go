package mcp

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// challenge is what a server wants of those whom it refuses with 401 or 403: where it says who gives tokens, and the scopes that they must
// have.
type challenge struct {
	url      string // of the server that it is of
	metadata string
	scopes   []string
}

// maxScopes bounds how many scopes of a server are remembered, maxScope how long one may be.
const (
	maxScopes = 100
	maxScope  = 200
)

// readChallenge reads the WWW-Authenticate headers of an answer. What cannot be read says nothing.
func readChallenge(headers []string) (c challenge) {
	said, err := oauthex.ParseWWWAuthenticate(headers)
	if err != nil {
		return c
	}
	for _, one := range said {
		if one.Scheme != "bearer" {
			continue
		}
		c.metadata = cmp.Or(c.metadata, one.Params["resource_metadata"])
		for _, scope := range strings.Fields(one.Params["scope"]) {
			if len(scope) <= maxScope && !strings.ContainsFunc(scope, unseen) {
				c.scopes = union(c.scopes, []string{scope})
			}
		}
	}
	return c
}

// union is a list and what another has besides.
func union(a, b []string) []string {
	list := slices.Clone(a)
	for _, one := range b {
		if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}

// refused remembers what a server wanted when it refused a request. Scopes add up until somebody has authorized it: each was wanted for
// something that somebody tried.
func (p *Pool) refused(who principal, headers []string) {
	said := readChallenge(headers)
	p.mu.Lock()
	defer p.mu.Unlock()
	key := Key{Workspace: who.p.Workspace, Server: who.server.ID}
	last := p.challenges[key]
	if last.url != who.server.URL {
		last = challenge{}
	}
	scopes := union(last.scopes, said.scopes)
	p.challenges[key] = challenge{who.server.URL, cmp.Or(said.metadata, last.metadata), scopes[:min(len(scopes), maxScopes)]}
}

// wanted is what a server has wanted since it was authorized.
func (p *Pool) wanted(who principal) challenge {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.challenges[Key{Workspace: who.p.Workspace, Server: who.server.ID}]; c.url == who.server.URL {
		return c
	}
	return challenge{}
}

// ForgetChallenge forgets what a server has wanted: it was granted, or cannot be.
func (p *Pool) ForgetChallenge(workspace, server string) {
	p.mu.Lock()
	delete(p.challenges, Key{Workspace: workspace, Server: server})
	p.mu.Unlock()
}

// probe asks a server for its tools without a token, so that it says what it wants. Why it does not answer does not matter here: there are
// usual places where the same is written.
func (p *Pool) probe(ctx context.Context, who principal) {
	who.server.Credential = ""
	key := Key{who.p.Workspace, who.server.ID, who.p.User}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.wg.Add(1)
	p.mu.Unlock()
	defer p.wg.Done()
	ctx, stop := context.WithTimeout(ctx, probePatience)
	defer stop()
	defer context.AfterFunc(p.ctx, stop)()
	c, err := p.dial(ctx, key, who)
	if err == nil {
		_, err = c.list(ctx, true)
		c.close()
	}
	if err != nil {
		p.options.Log.DebugContext(ctx, "tool server: asked without a token", "server", key.Server,
			"workspace", key.Workspace, "error", err)
	}
}
