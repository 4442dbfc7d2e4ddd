package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
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
	// Created is in Unix milliseconds.
	Created int64
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
	// Expires is in Unix milliseconds; zero: never.
	Expires int64
}

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
