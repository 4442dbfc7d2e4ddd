package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tandem/store"
	"tandem/text"
)

// resolve reads the values of variables or headers. Release ends the use of the secrets among them.
func (p *Pool) resolve(ctx context.Context, who principal, from map[string]store.MCPValue) (map[string]string, func(), error) {
	var releases []func()
	release := func() {
		for _, f := range releases {
			f()
		}
	}
	values := make(map[string]string, len(from))
	for name, v := range from {
		if v.Credential == "" {
			values[name] = v.Text
			continue
		}
		if p.options.Secrets == nil {
			release()
			return nil, nil, errors.New("no credentials are configured")
		}
		secret, done, err := p.options.Secrets.Secret(ctx, who.p, v.Credential, v.Field)
		if err != nil {
			release()
			return nil, nil, fmt.Errorf("the credential for %q: %w", name, err)
		}
		releases, values[name] = append(releases, done), v.Prefix+secret
	}
	return values, release, nil
}

// secretsOf are the secrets among values, without what stands before them.
func secretsOf(values map[string]string, from map[string]store.MCPValue) []string {
	var list []string
	for name, v := range from { // order does not matter: each is looked for by itself
		if v.Credential != "" {
			list = append(list, strings.TrimPrefix(values[name], v.Prefix))
		}
	}
	return list
}

// clean takes secrets out of an error that a server may have worded.
func (p *Pool) clean(workspace string, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || p.options.Redact == nil {
		return err
	}
	told := e.Message
	e.Message = text.Settled(func(language string) string { return p.redact(workspace, told.In(language)) })
	if e.cause != nil {
		if why := e.cause.Error(); p.redact(workspace, why) != why {
			e.cause = errors.New(p.redact(workspace, why)) // what it was is no longer told apart, which is better than telling all
		}
	}
	return err
}

func (p *Pool) redact(workspace, text string) string {
	if p.options.Redact == nil {
		return text
	}
	return p.options.Redact(workspace, text)
}
