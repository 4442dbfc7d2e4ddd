package identity

import (
	"fmt"
	"strings"
	"time"
)

// MeansKind is a way to prove who one is.
type MeansKind string

// The ways. Each door of Tandem sets its own, and no request can say otherwise.
const (
	// ByToken is an API token, whatever program sent it: the command line, a page, a client of the Model Context Protocol.
	ByToken MeansKind = "token"
	// BySession is a browser that the user has logged in with.
	BySession MeansKind = "session"
	// ByLocal is a command on the machine of the data directory, which needs no token: the account of the operating system vouches.
	ByLocal MeansKind = "local"
	// ByLink is a personal link to the response page, or one for anyone.
	ByLink MeansKind = "link"
	// ByChannel is an account of a medium: a mail address, a member of a chat.
	ByChannel MeansKind = "channel"
	// ByWebhook is a call back that is signed with the secret of a credential. The program that holds the secret says who answers.
	ByWebhook MeansKind = "webhook"
	// ByCallback is the address that a service was given to call back, which nobody else knows.
	ByCallback MeansKind = "callback"
	// ByVisit is the cookie of a browser that has a conversation with a workflow, by which the visitor is known.
	ByVisit MeansKind = "visit"
)

// Means is how somebody proved who they are. It is recorded with what they did, so that a person who looks at it later can tell
// an answer by the person from one that somebody else could have given. The zero value says that it is not known: it was
// recorded before means were.
type Means struct {
	Kind MeansKind `json:"kind,omitempty" enum:"token,session,local,link,channel,webhook,callback,visit"`
	// Session is the id of the session of a browser. Token is then the one that it was logged in with, if it was one.
	Session string `json:"session_id,omitempty" doc:"the session of the browser"`
	// Token is the id of the token, also of the one that asked for a link.
	Token string `json:"token_id,omitempty" doc:"the token that was used; of a link that was shown, the one that it was asked for with"`
	// TokenMadeBy is who made the token. Somebody else than its user has seen its secret, too.
	TokenMadeBy string `json:"token_made_by,omitempty" doc:"who made the token, and so has seen its secret"`
	// Address is where a link was sent, the account that a reply came from, or the account of the operating system.
	Address string `json:"address,omitempty" doc:"where the link was sent, the account that the reply came from, or os:NAME for the account on the machine"`
	// KnownBy is the address of the user by which they were recognised or are among those who are asked, if it is another one.
	KnownBy string `json:"known_by,omitempty" doc:"the address in the user's record by which they were recognised or are asked, if it is not the address above"`
	// AddressSetBy is who entered that address in the user's record, at AddressSetAt.
	AddressSetBy string `json:"address_set_by,omitempty" doc:"who entered this address in the user's record, if it was not the user"`
	// AddressTokenMadeBy is who made the token that it was entered with, if it was somebody else than AddressSetBy.
	AddressTokenMadeBy string `json:"address_token_made_by,omitempty" doc:"who made the token that the address was entered with, if that was somebody else again"`
	AddressSetAt       int64  `json:"address_set_at,omitempty" doc:"when it was entered"`
	// Credential is the account that a channel or webhook acts with.
	Credential string `json:"credential_id,omitempty" doc:"the credential of the channel that it came by"`
}

// TokenMadeBy is who made the token that the principal acts with, if that is somebody else. Empty: the principal made it,
// there is none, or nobody knows.
func (p Principal) TokenMadeBy() string {
	if p.Means.TokenMadeBy == p.User {
		return ""
	}
	return p.Means.TokenMadeBy
}

// ForOthers says that the means of a user were, or could have been, in the hands of somebody else, who is named.
func (m Means) ForOthers(user string) bool {
	return m.TokenMadeBy != "" && m.TokenMadeBy != user || m.AddressSetBy != "" && m.AddressSetBy != user || m.AddressTokenMadeBy != ""
}

// Describe says it in words, about a user.
func (m Means) Describe(user string) string {
	var parts []string
	switch m.Kind {
	case ByToken:
		parts = append(parts, "token "+m.Token)
	case BySession:
		text := "session " + m.Session
		if m.Token != "" {
			text += " of token " + m.Token
		}
		parts = append(parts, text)
	case ByLocal:
		parts = append(parts, strings.TrimSpace("a command on the machine of the data, "+m.Address))
	case ByLink:
		switch {
		case m.Address != "":
			parts = append(parts, "a link sent to "+m.Address)
		case m.Token != "":
			parts = append(parts, "a link shown to the user of token "+m.Token)
		default:
			parts = append(parts, "a link")
		}
	case ByChannel:
		parts = append(parts, "the account "+m.Address)
	case ByWebhook:
		parts = append(parts, "a call back signed with credential "+m.Credential)
	case ByCallback:
		parts = append(parts, "a call back")
	case ByVisit:
		parts = append(parts, "the conversation in a chat")
	default:
		return ""
	}
	if m.TokenMadeBy != "" && m.TokenMadeBy != user {
		parts = append(parts, "which "+m.TokenMadeBy+" made")
	}
	if m.KnownBy != "" {
		parts = append(parts, "known by "+m.KnownBy)
	}
	if m.AddressSetBy != "" && (m.AddressSetBy != user || m.AddressTokenMadeBy != "") {
		text := fmt.Sprintf("an address that %s entered on %s", m.AddressSetBy, time.UnixMilli(m.AddressSetAt).UTC().Format(time.DateOnly))
		if m.AddressTokenMadeBy != "" {
			text += " with a token that " + m.AddressTokenMadeBy + " made"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
