package api

// ContactChannel is an account of the installation through which people can let questions reach them.
type ContactChannel struct {
	Name           string `json:"name"`
	ChannelType    string `json:"channel_type" doc:"the medium: email, slack, telegram, discord, teams, webhook"`
	CredentialID   string `json:"credential_id,omitempty" doc:"what messages are sent with"`
	InCredentialID string `json:"in_credential_id,omitempty" doc:"what replies are read with, if that is another credential"`
	WebhookURL     string `json:"webhook_url,omitempty" doc:"where questions are posted to, of the medium webhook; for admins"`
	NeedsAddress   bool   `json:"needs_address" doc:"a person who chooses it says which address there is theirs"`
	CreatedBy      string `json:"created_by,omitempty"`
	CreatedTime    int64  `json:"created_time"`
	UpdatedTime    int64  `json:"updated_time"`
}

// ContactChannels lists them, by name.
type ContactChannels struct {
	Channels []ContactChannel `json:"channels"`
	Media    []ContactMedium  `json:"media" doc:"what contact channels can be of here, by name"`
}

// ContactMedium is a way to reach people, and what an account of it needs.
type ContactMedium struct {
	ChannelType string   `json:"channel_type"`
	Credentials []string `json:"credentials" doc:"the types of credential that messages can be sent with"`
	ReadsWith   []string `json:"reads_with,omitempty" doc:"the types of another credential that replies can be read with"`
	NeedsURL    bool     `json:"needs_url,omitempty" doc:"a channel of it has a webhook_url"`
}

// ContactChannelRequest makes or replaces a contact channel.
type ContactChannelRequest struct {
	ChannelType    string `json:"channel_type,omitempty" doc:"the medium; left out, it is that of the credential"`
	CredentialID   string `json:"credential_id,omitempty" doc:"the name or the id of the credential that messages are sent with"`
	InCredentialID string `json:"in_credential_id,omitempty" doc:"of mail: the name or the id of the credential that replies are read with, if it is another one"`
	WebhookURL     string `json:"webhook_url,omitempty" format:"uri" maxLength:"2000" doc:"where questions are posted to, of the medium webhook"`
}

// Contact is a place where a user wants questions to reach them.
type Contact struct {
	Channel      string `json:"channel" minLength:"1" maxLength:"100" doc:"the name of a contact channel"`
	Address      string `json:"address,omitempty" maxLength:"320" doc:"the user's own address there: a mail address, a member id of Slack. None for the medium webhook"`
	AfterSeconds int64  `json:"after_seconds,omitempty" minimum:"0" maximum:"604800" doc:"how long a question may wait in the inbox before it is sent there; 0: it is sent at once"`
	Problem      string `json:"problem,omitempty" readOnly:"true" doc:"why nothing is sent there now"`
}

// Reach is where the questions that a user may answer reach them, besides the inbox.
type Reach struct {
	UserID   string    `json:"user_id"`
	Contacts []Contact `json:"contacts" doc:"all of them are told of a question; the first is where a link goes that an admin has sent"`
	Language string    `json:"language,omitempty" enum:"zh,en" doc:"the language of messages; absent: that of the question"`
	// Addresses are those that contacts can have without a proof.
	Addresses []string       `json:"addresses" doc:"the addresses that are known to be the user's"`
	Proofs    []AddressProof `json:"proofs" doc:"addresses that a code was sent to and that are not proved yet"`
}

// ReachRequest says where questions reach a user.
type ReachRequest struct {
	Contacts []Contact `json:"contacts" maxItems:"20" doc:"none: in the inbox only"`
	Language *string   `json:"language,omitempty" enum:"zh,en," doc:"the language of the pages and messages that they read; left out, it stays as it is"`
}

// AddressRequest names an address that somebody wants questions to be sent to, and the contact channel that leads there.
type AddressRequest struct {
	Channel string `json:"channel" minLength:"1" maxLength:"100" doc:"the name of a contact channel"`
	Address string `json:"address" minLength:"1" maxLength:"320"`
}

// AddressProof is an address that a code was sent to.
type AddressProof struct {
	Address     string `json:"address" doc:"written as channel:address"`
	Channel     string `json:"channel" doc:"the contact channel that the code went through"`
	ExpiresTime int64  `json:"expires_time"`
}

// AddressConfirmation has the code that proves that an address belongs to the caller.
type AddressConfirmation struct {
	Address string `json:"address" minLength:"1" maxLength:"320"`
	Code    string `json:"code" minLength:"1" maxLength:"40" doc:"what was sent there"`
}
