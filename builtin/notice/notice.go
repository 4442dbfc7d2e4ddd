// Package notice is what a vendor says of the way in which it delivers notices: what notifications call it, and what a kind of the vendor
// is configured with for it. Package notify makes the deliveries; the package of a vendor brings a [Way].
package notice

import (
	"slices"

	"tandem/fault"
	"tandem/text"
	"tandem/workflow"
)

// Way is a way to deliver notices.
type Way struct {
	// Name is what notifications call it: the type of a channel.
	Name string
	// Kind is the kind of node that delivers.
	Kind string
	// Effect says what repeating a delivery means; empty: it is not repeated.
	Effect workflow.Effect
	// ID is the field of the kind's result that tells which message it was.
	ID string
	// Settings are what it reads of a channel besides to and credential_id.
	Settings []Setting
	// Configure makes the configuration with which the kind delivers a notice.
	Configure func(n Notice) map[string]any
}

// Setting is a text that people may write in a channel for one way, or for several that read the same.
type Setting struct {
	Name    string
	Meaning text.Text
}

// Check refuses settings that a channel cannot have.
func (w *Way) Check() error {
	for i, s := range w.Settings {
		switch {
		case s.Name == "" || s.Meaning.IsZero():
			return fault.Newf(fault.Invalid, "a setting of the way to deliver notices %q has no name, or does not say what it means", w.Name)
		case slices.Contains([]string{"type", "to", "credential_id"}, s.Name):
			return fault.Newf(fault.Invalid, "the way to deliver notices %q has a setting %q, which every channel has already", w.Name, s.Name)
		case slices.ContainsFunc(w.Settings[:i], func(o Setting) bool { return o.Name == s.Name }):
			return fault.Newf(fault.Invalid, "the way to deliver notices %q has the setting %q twice", w.Name, s.Name)
		}
	}
	return nil
}

// Reads says whether it reads a setting.
func (w *Way) Reads(setting string) bool {
	return slices.ContainsFunc(w.Settings, func(s Setting) bool { return s.Name == setting })
}

// Notice is something that is delivered.
type Notice struct {
	// To is whom it is for, as the way names them; Credential what it is sent with.
	To, Credential string
	// Settings are those of the channel, by name; empty: not set.
	Settings map[string]string
	// Title and Message are what is told. Subject is never empty: it is the title, or the beginning of the message.
	Title, Subject, Message string
	// Text is the message with the link that goes along.
	Text string
	// Content is what goes along for programs: data and link.
	Content map[string]any
}
