package mcp

import (
	"context"
	"errors"
	"net/url"
	"time"

	"tandem/credential/oauth"
	"tandem/text"
)

// Grant is what an authorization server has given for a tool server.
type Grant = oauth.Grant

// Authorization is one that has begun.
type Authorization = oauth.Authorization

// early is how long before its end a token is renewed.
const early = 30 * time.Second

// tokenSource hands out the token of a server and user and renews it, one renewal at a time: a refresh token is often good
// for one use.
type tokenSource struct {
	pool *Pool
	who  principal
	gate chan struct{} // has room for one: who holds it may load and renew
}

// token returns the source of a credential. Connections of one credential share the gate, since they share the refresh token.
func (p *Pool) token(who principal) *tokenSource {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := Key{Workspace: who.p.Workspace, Server: who.server.Credential}
	if p.gates[key] == nil {
		p.gates[key] = make(chan struct{}, 1)
	}
	return &tokenSource{pool: p, who: who, gate: p.gates[key]}
}

// getToken returns a token. Refused is one that the server did not take; it is not returned again.
func (t *tokenSource) getToken(ctx context.Context, refused string) (string, error) {
	select {
	case t.gate <- struct{}{}:
		defer func() { <-t.gate }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	server := t.who.server
	unauthorized := func(message text.Text, err error) error {
		return &Error{Kind: Unauthorized, Server: server.ID, Message: message, cause: err}
	}
	g, err := t.pool.options.Grants.Load(ctx, t.who.p, server.Credential)
	if err != nil {
		return "", unauthorized(text.Of("its tokens could not be read; authorize it"), err)
	}
	remedy := text.Of("authorize it: tandem mcp servers authorize %s", server.ID)
	if g.Resource != "" && !covers(g.Resource, server.URL) {
		return "", unauthorized(text.Of("nothing was sent: the token in credential %q is for %q, and the server is at %q; %s", server.Credential, g.Resource, server.URL, remedy), nil)
	}
	fresh := g.Expires == 0 || time.UnixMilli(g.Expires).After(time.Now().Add(early))
	if g.AccessToken != "" && g.AccessToken != refused && fresh {
		return g.AccessToken, nil
	}
	if g.RefreshToken == "" || g.TokenURL == "" {
		switch {
		case g.AccessToken == "":
			return "", unauthorized(text.Of("nothing was sent: credential %q has no token yet; %s", server.Credential, remedy), nil)
		case g.AccessToken == refused:
			return "", unauthorized(text.Of("the server does not take the token, and there is nothing to renew it with; %s", remedy), nil)
		}
		return "", unauthorized(text.Of("nothing was sent: the token has expired, and there is nothing to renew it with; %s", remedy), nil)
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.RefreshToken}}
	next, err := g.Exchange(ctx, t.pool.options.HTTP, form)
	if oauth.ClientRefused(err) && g.Redirect != "" && g.ClientExpires == 0 {
		// The authorization server has forgotten the client: the next authorization makes another one known.
		g.ClientExpires = time.Now().UnixMilli()
		err = errors.Join(err, t.pool.options.Grants.Save(context.WithoutCancel(ctx), t.who.p, server.Credential, g))
	}
	if err != nil {
		return "", unauthorized(text.Of("the token could not be renewed; %s", remedy), err)
	}
	// A token that is used before it is kept could be lost, and with it the only refresh token.
	if err := t.pool.options.Grants.Save(context.WithoutCancel(ctx), t.who.p, server.Credential, next); err != nil {
		return "", unauthorized(text.Of("the renewed token could not be kept"), err)
	}
	return next.AccessToken, nil
}

// maxTokenAnswer bounds the answer of an authorization server.
const maxTokenAnswer = 1 << 20
