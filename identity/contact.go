package identity

import (
	"encoding/json"

	"tandem/fault"
)

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
	var settings map[string]json.RawMessage
	var list []Contact
	if len(u.Settings) == 0 || json.Unmarshal(u.Settings, &settings) != nil || json.Unmarshal(settings[contactSetting], &list) != nil {
		return nil // none are chosen, or the settings are somebody else's
	}
	return list
}

// SetContacts keeps them among the user's settings.
func (u *User) SetContacts(list []Contact) error {
	settings := map[string]json.RawMessage{}
	if len(u.Settings) > 0 {
		if err := json.Unmarshal(u.Settings, &settings); err != nil {
			return fault.Newf(fault.Internal, "the settings of user %q cannot be read: %w", u.ID, err)
		}
	}
	raw, err := json.Marshal(list)
	if settings[contactSetting] = raw; len(list) == 0 {
		delete(settings, contactSetting)
	}
	if err == nil && len(settings) == 0 {
		u.Settings = nil
		return nil
	}
	if err == nil {
		u.Settings, err = json.Marshal(settings)
	}
	if err != nil {
		return fault.Newf(fault.Internal, "where user %q is reached cannot be kept: %w", u.ID, err)
	}
	return nil
}
