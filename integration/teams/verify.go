package teams

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"tandem/fault"
)

const (
	// skew is how far clocks may be apart.
	skew = 5 * time.Minute
	// keysLife is how long keys are used before they are asked for again, keysPause the least time between two questions: forged
	// tokens must not make this instance ask all the time.
	keysLife  = 24 * time.Hour
	keysPause = time.Minute
	// keysTimeout bounds asking, since others wait for it.
	keysTimeout = 15 * time.Second
)

// keyrings are the signing keys by the address of their metadata. The lock guards the map; each ring has its own.
type keyrings struct {
	mu   sync.Mutex
	kept map[string]*keyring
}

// keyring is what the bot service signs with. Its lock is held while keys are asked for: those who need them wait.
type keyring struct {
	mu      sync.Mutex
	issuer  string
	keys    []signingKey
	fetched time.Time
	asked   time.Time
}

// signingKey is a key, and the channels that it may speak for; nil: it does not say.
type signingKey struct {
	jose.JSONWebKey
	endorsements []string
}

func (k *keyring) find(id string) (signingKey, bool) {
	i := slices.IndexFunc(k.keys, func(key signingKey) bool { return key.KeyID == id })
	if i < 0 {
		return signingKey{}, false
	}
	return k.keys[i], true
}

// key finds a signing key and who signs with it, and asks for new keys when there is need.
func (b *bot) key(ctx context.Context, id string) (signingKey, string, error) {
	b.c.keys.mu.Lock()
	if b.c.keys.kept == nil {
		b.c.keys.kept = map[string]*keyring{}
	}
	ring := b.c.keys.kept[b.metadata]
	if ring == nil {
		ring = &keyring{}
		b.c.keys.kept[b.metadata] = ring
	}
	b.c.keys.mu.Unlock()

	ring.mu.Lock()
	defer ring.mu.Unlock()
	now := b.c.now()
	key, found := ring.find(id)
	current := now.Sub(ring.fetched) < keysLife
	switch {
	case found && current:
		return key, ring.issuer, nil
	case current && now.Sub(ring.asked) < keysPause:
		return key, "", fault.New(fault.Unauthorized, "the token is signed with a key that the bot service does not have")
	}
	ring.asked = now
	ctx, cancel := context.WithTimeout(ctx, keysTimeout)
	defer cancel()
	if err := b.fetchKeys(ctx, ring); err != nil {
		return key, "", err
	}
	ring.fetched = now
	if key, found = ring.find(id); !found {
		return key, "", fault.New(fault.Unauthorized, "the token is signed with a key that the bot service does not have")
	}
	return key, ring.issuer, nil
}

// fetchKeys asks for the keys.
func (b *bot) fetchKeys(ctx context.Context, ring *keyring) error {
	var metadata struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := b.do(ctx, exchange{what: "asking for the keys of the bot service", method: http.MethodGet, url: b.metadata},
		&metadata); err != nil {
		return err
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := b.do(ctx, exchange{what: "asking for the keys of the bot service", method: http.MethodGet, url: metadata.Keys},
		&set); err != nil {
		return err
	}
	var keys []signingKey
	for _, raw := range set.Keys {
		var key signingKey
		var more struct {
			Endorsements []string `json:"endorsements"`
		}
		// Keys of kinds that this version does not know do not verify tokens here.
		if json.Unmarshal(raw, &key.JSONWebKey) == nil && json.Unmarshal(raw, &more) == nil && key.Valid() && key.IsPublic() {
			key.endorsements = more.Endorsements
			keys = append(keys, key)
		}
	}
	if metadata.Issuer == "" || len(keys) == 0 {
		return fault.New(fault.RemoteError, "the bot service told no keys")
	}
	ring.issuer, ring.keys = metadata.Issuer, keys
	return nil
}

// verify says whether an activity was brought by the bot service for this app: a signature of its keys, its issuer, this app as
// audience, a time that has not passed, and the address that answers go to.
func (b *bot) verify(ctx context.Context, header string, a activity) error {
	scheme, text, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") || text == "" {
		return fault.New(fault.Unauthorized, "there is no token of the bot service")
	}
	wrong := func(what string, err error) error {
		return fault.New(fault.Unauthorized, "the token is none of the bot service for this app: "+what).WithCause(err)
	}
	parsed, err := jwt.ParseSigned(strings.TrimSpace(text), []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512})
	if err != nil || len(parsed.Headers) != 1 || parsed.Headers[0].KeyID == "" {
		return wrong("it cannot be read", err)
	}
	key, issuer, err := b.key(ctx, parsed.Headers[0].KeyID)
	if err != nil {
		return err
	}
	var claims jwt.Claims
	var more struct {
		Service string `json:"serviceurl"`
	}
	if err := parsed.Claims(key.JSONWebKey.Key, &claims, &more); err != nil {
		return wrong("its signature is not right", err)
	}
	if claims.Expiry == nil {
		return wrong("it never ends", nil)
	}
	if err := claims.ValidateWithLeeway(jwt.Expected{Issuer: issuer, AnyAudience: jwt.Audience{b.appID}, Time: b.c.now()},
		skew); err != nil {
		return wrong("issuer, audience or time are not right", err)
	}
	if more.Service == "" || strings.TrimRight(more.Service, "/") != strings.TrimRight(a.Service, "/") {
		return wrong("it is for another address of the service", nil)
	}
	if key.endorsements != nil && !slices.Contains(key.endorsements, a.Channel) {
		return wrong("its key does not speak for this channel", nil)
	}
	if a.Channel != "msteams" {
		return wrong("it is not about Teams", nil)
	}
	if tenant := cmp.Or(a.ChannelData.Tenant.ID, a.Conversation.Tenant); b.tenant != anyTenant && !strings.EqualFold(tenant, b.tenant) {
		return wrong("it is about another tenant", nil)
	}
	return nil
}
