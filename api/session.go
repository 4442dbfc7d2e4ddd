package api

// Session is a browser that somebody has logged in with.
type Session struct {
	ID          string `json:"id"`
	UserID      string `json:"user_id"`
	Method      string `json:"method" doc:"how they logged in" enum:"token,link,oidc,invitation"`
	TokenID     string `json:"token_id,omitempty" doc:"the token that was shown"`
	Address     string `json:"address,omitempty" doc:"where it was logged in from"`
	UserAgent   string `json:"user_agent,omitempty"`
	CreatedTime int64  `json:"created_time"`
	SeenTime    int64  `json:"seen_time" doc:"when it was last used, to a minute"`
	ExpiresTime int64  `json:"expires_time"`
	Current     bool   `json:"current,omitempty" doc:"it is the one that asks"`
}

// Sessions lists them, the newest first.
type Sessions struct {
	Sessions []Session `json:"sessions"`
}

// Invitation lets somebody become a user, once.
type Invitation struct {
	ID           string   `json:"id"`
	Email        string   `json:"email"`
	Name         string   `json:"name,omitempty"`
	Roles        []string `json:"roles"`
	InvitedBy    string   `json:"invited_by"`
	TokenMadeBy  string   `json:"token_made_by,omitempty" doc:"who made the token that it was made with, if it was somebody else"`
	CreatedTime  int64    `json:"created_time"`
	ExpiresTime  int64    `json:"expires_time"`
	AcceptedTime int64    `json:"accepted_time,omitempty"`
	UserID       string   `json:"user_id,omitempty" doc:"who came of it"`
}

// Invitations lists them, the newest first.
type Invitations struct {
	Invitations []Invitation `json:"invitations"`
}

// InvitationRequest invites somebody.
type InvitationRequest struct {
	Email     string   `json:"email" doc:"whose invitation it is"`
	Name      string   `json:"name,omitempty"`
	Roles     []string `json:"roles"`
	ExpiresIn int64    `json:"expires_in,omitempty" doc:"seconds; 0: seven days; at most 90 days"`
}

// NewInvitation is an invitation with its link, which is shown this once.
type NewInvitation struct {
	Invitation Invitation `json:"invitation"`
	URL        string     `json:"url" doc:"anyone who has it can join, once"`
}
