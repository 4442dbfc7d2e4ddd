package identity

// Session is a browser that a user has logged in with. Its secret is in a cookie of the browser and is kept nowhere else.
type Session struct {
	Workspace string
	ID        string
	User      string
	// Method is how the user logged in: token, oidc or invitation.
	Method string
	// Token is the id of the token that was shown, TokenMadeBy who made it and Scopes what it may be used for.
	Token       string
	TokenMadeBy string
	Scopes      []Scope
	// Address and Agent are where it was logged in from.
	Address string
	Agent   string
	Created int64
	// Seen is when it was last used, to a minute.
	Seen int64
	// Expires is when it ends however much it is used.
	Expires int64
}

// Means is what the browser proves to be its user by.
func (s Session) Means() Means {
	return Means{Kind: BySession, Session: s.ID, Token: s.Token, TokenMadeBy: s.TokenMadeBy}
}

// Invitation lets somebody become a user of a workspace, once. Its secret is in the link.
type Invitation struct {
	Workspace string
	ID        string
	// Email is whose it is: with a provider of identities, who has this verified address is who is invited.
	Email string
	Name  string
	Roles []Role
	// InvitedBy is who made it, TokenMadeBy who made the token that it was made with, if that was somebody else.
	InvitedBy   string
	TokenMadeBy string
	Created     int64
	Expires     int64
	// Accepted is when it was used, and User who came of it; zero: it was not.
	Accepted int64
	User     string
}

// Login says which user somebody is who logs in at a provider of identities.
type Login struct {
	Issuer    string
	Subject   string
	Workspace string
	User      string
	Created   int64
}
