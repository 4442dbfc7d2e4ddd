package identity

// Contact is one of the places where a user wants questions to reach them.
type Contact struct {
	// Channel is the name of the contact channel of the workspace that messages go through.
	Channel string `json:"channel"`
	// Address is the user's address there, written like an approver (mail:ADDRESS, slack:U1); empty where the medium needs none.
	Address string `json:"address,omitempty"`
	// AfterSeconds is how long a question may wait in the inbox before it is sent there; zero: it is sent at once.
	AfterSeconds int64 `json:"after_seconds,omitempty"`
}

// contactSetting is the name under which settings keep the contacts.
const contactSetting = "contacts"

// Contacts are where the user wants questions to reach them, in the order of their choice; none: in the inbox only.
func (u User) Contacts() []Contact {
	return settingOf[[]Contact](u, contactSetting)
}

// SetContacts keeps them among the user's settings.
func (u *User) SetContacts(list []Contact) error {
	return u.keepSetting(contactSetting, list, len(list) == 0)
}
