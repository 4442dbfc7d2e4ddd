package sqlite

import (
	"context"
	"slices"
	"sync"

	"tandem/identity"
	"tandem/store"
	"tandem/store/relational/accounts"
)

// tokens are those of the accounts, with the ones that were used lately at hand.
type tokens struct {
	accounts.Tokens
	db *DB
}

// Resolve implements [store.Tokens].
func (x tokens) Resolve(ctx context.Context, p identity.Principal, hash identity.SecretHash,
	now int64) (identity.Token, identity.User, error) {
	if err := store.RequireSystem(p); err != nil {
		return identity.Token{}, identity.User{}, err
	}
	if err := x.db.usable(); err != nil {
		return identity.Token{}, identity.User{}, err
	}
	generation := x.db.kept.accounts.Load()
	if t, u, ok := x.db.tokens.find(hash, generation, now); ok {
		return t, u, nil
	}
	t, u, err := x.Tokens.Resolve(ctx, p, hash, now)
	if err == nil {
		x.db.tokens.keepToken(hash, generation, t, u)
	}
	return t, u, err
}

// tokenCache keeps the tokens that were used lately, with their users, so that not every request reads them. What is kept holds
// until the next change of any token or user is on disk: anyone who was answered that a token is gone, or a user disabled, will
// not see it accepted again. Tokens that are not known are not kept.
type tokenCache struct {
	mu    sync.Mutex
	known map[identity.SecretHash]knownToken
}

type knownToken struct {
	generation uint64
	token      identity.Token
	user       identity.User
}

// maxTokens bounds how many are kept.
const maxTokens = 1024

// find returns what is kept of a token at a time, in Unix milliseconds. Generation is the present one.
func (c *tokenCache) find(hash identity.SecretHash, generation uint64, now int64) (identity.Token, identity.User, bool) {
	c.mu.Lock()
	k, ok := c.known[hash]
	c.mu.Unlock()
	if !ok || k.generation != generation || k.token.Expires != 0 && k.token.Expires <= now {
		return identity.Token{}, identity.User{}, false
	}
	k.user.Roles = slices.Clone(k.user.Roles)
	k.user.Settings = slices.Clone(k.user.Settings)
	return k.token, k.user, true
}

// keepToken keeps what was read. Generation is that of before the reading: if there was a change since, it is not kept.
func (c *tokenCache) keepToken(hash identity.SecretHash, generation uint64, t identity.Token, u identity.User) {
	u.Roles, u.Settings = slices.Clone(u.Roles), slices.Clone(u.Settings)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxTokens {
		c.known = map[identity.SecretHash]knownToken{}
	}
	c.known[hash] = knownToken{generation, t, u}
}
