package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"

	"tandem/fault"
)

// Roles lists the roles, from the most to the least.
func Roles() []Role { return []Role{Admin, Editor, Operator, Approver, Viewer} }

// Known says whether it is one of the five roles.
func (r Role) Known() bool { return slices.Contains(Roles(), r) }

// workspaceID is narrow on purpose: the id is also the name of a directory. It is read-only.
var workspaceID = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// CheckWorkspace says whether an id can name a workspace.
func CheckWorkspace(id string) error {
	if !workspaceID.MatchString(id) {
		return fault.Newf(fault.Invalid, "workspace id %q: use 1 to 63 lower-case letters, digits, - and _, beginning with a letter or a digit", id)
	}
	return nil
}

// Workspace is a tenant.
type Workspace struct {
	ID   string
	Name string
	// Created is in Unix milliseconds, and so is Deleted; zero: it is there. Of a deleted one nothing is left but its id and its audit log.
	Created int64
	Deleted int64
}

// User is a person or a program in one workspace.
type User struct {
	Workspace string
	ID        string
	Name      string
	Email     string
	Roles     []Role
	// Settings are the user's own, as JSON; what they mean is for those who read them.
	Settings []byte
	// AutoExecute lets calls of low risk run without a confirmation, for agents that allow it, too.
	AutoExecute bool
	// Disabled users keep their records but cannot act.
	Disabled bool
	Created  int64
	Updated  int64
}

// Principal is the user acting for itself.
func (u User) Principal() Principal {
	return Principal{Workspace: u.Workspace, User: u.ID, Roles: slices.Clone(u.Roles)}
}

// Token is what is known about an API token; the secret itself is shown once and kept nowhere.
type Token struct {
	Workspace string
	ID        string
	User      string
	// Name is for the person who has to tell tokens apart.
	Name    string
	Created int64
	// MadeBy is the user who made it: somebody else than its user has seen the secret, too. A token that was made with a token
	// that somebody else had made is that person's, so that making another one covers no tracks. Empty: nobody knows, it is older
	// than this record.
	MadeBy string
	// Expires is in Unix milliseconds; zero: never.
	Expires int64
	// Scopes are what it may be used for; none: for whatever its user may do.
	Scopes []Scope
	// LastUsed is when it was last used, to some minutes; zero: not yet, or nobody knows. It is set in listings.
	LastUsed int64
}

// Means is what the bearer of the token proves to be its user by.
func (t Token) Means() Means { return Means{Kind: ByToken, Token: t.ID, TokenMadeBy: t.MadeBy} }

// SecretHash is all that is stored of a token's secret.
type SecretHash [sha256.Size]byte

// secretPrefix lets scanners of source code and logs recognise a leaked token.
const secretPrefix = "tdm_"

// NewSecret makes the secret of an API token: 256 random bits.
func NewSecret() string {
	var raw [32]byte
	// It cannot fail: crypto/rand ends the process instead.
	_, _ = rand.Read(raw[:])
	return secretPrefix + base64.RawURLEncoding.EncodeToString(raw[:])
}

// HashSecret hashes a secret for keeping and for looking up. A plain hash is enough because the secret is random and
// long: there is nothing to guess.
func HashSecret(secret string) SecretHash { return sha256.Sum256([]byte(secret)) }

// AddressOrigin is who entered an address in a user's record, and when.
type AddressOrigin struct {
	By string `json:"by"`
	// TokenMadeBy is who made the token that it was entered with, if it was somebody else than By.
	TokenMadeBy string `json:"token_made_by,omitempty"`
	At          int64  `json:"at"`
}

// addressOrigins is the name under which settings keep them.
const addressOrigins = "address_origins"

// AddressOrigins are those of the user's addresses whose origin is known, by address as approvers write it (mail:ADDRESS,
// slack:U1).
func (u User) AddressOrigins() map[string]AddressOrigin {
	return settingOf[map[string]AddressOrigin](u, addressOrigins)
}

// SetAddressOrigins keeps them among the user's settings.
func (u *User) SetAddressOrigins(origins map[string]AddressOrigin) error {
	return u.keepSetting(addressOrigins, origins, len(origins) == 0)
}

// languageSetting is the name under which settings keep the language.
const languageSetting = "language"

// Language is the language that the user reads: zh or en; empty: they have not said.
func (u User) Language() string {
	return settingOf[string](u, languageSetting)
}

// SetLanguage keeps the language that the user reads among their settings; empty: they do not say.
func (u *User) SetLanguage(language string) error {
	return u.keepSetting(languageSetting, language, language == "")
}

// settingOf reads one of a user's settings: the zero value if it is not set, or the settings are somebody else's.
func settingOf[T any](u User, name string) T {
	var settings map[string]json.RawMessage
	var value, none T
	if len(u.Settings) == 0 || json.Unmarshal(u.Settings, &settings) != nil || json.Unmarshal(settings[name], &value) != nil {
		return none
	}
	return value
}

// keepSetting keeps a value among the user's settings, and takes it out if it is empty.
func (u *User) keepSetting(name string, value any, empty bool) error {
	settings := map[string]json.RawMessage{}
	if len(u.Settings) > 0 {
		if err := json.Unmarshal(u.Settings, &settings); err != nil {
			return fault.Newf(fault.Internal, "the settings of user %q cannot be read: %w", u.ID, err)
		}
	}
	raw, err := json.Marshal(value)
	if settings[name] = raw; empty {
		delete(settings, name)
	}
	if err == nil && len(settings) == 0 {
		u.Settings = nil
		return nil
	}
	if err == nil {
		u.Settings, err = json.Marshal(settings)
	}
	if err != nil {
		return fault.Newf(fault.Internal, "the setting %q of user %q cannot be kept: %w", name, u.ID, err)
	}
	return nil
}

// Through is the means with where an address of a user comes from. Whatever the user entered themself needs no word.
func (m Means) Through(u User, address string) Means {
	o, known := u.AddressOrigins()[address]
	if !known || o.By == u.ID && o.TokenMadeBy == "" {
		return m
	}
	m.AddressSetBy, m.AddressTokenMadeBy, m.AddressSetAt = o.By, o.TokenMadeBy, o.At
	return m
}
