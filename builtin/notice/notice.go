// Package notice is what a vendor says of the way in which it delivers notices: what notifications call it, and what a kind of the vendor
// is configured with for it. Package notify makes the deliveries; the package of a vendor brings a [Way].
package notice

import "tandem/workflow"

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
	// Reads are the settings of a channel, besides to and credential_id, that it reads.
	Reads []string
	// Configure makes the configuration with which the kind delivers a notice.
	Configure func(n Notice) map[string]any
}

// Notice is something that is delivered.
type Notice struct {
	// To is whom it is for, as the way names them; Credential what it is sent with.
	To, Credential string
	// Settings are those that the way reads, by name; empty: not set.
	Settings map[string]string
	// Title and Message are what is told. Subject is never empty: it is the title, or the beginning of the message.
	Title, Subject, Message string
	// Text is the message with the link that goes along.
	Text string
	// Content is what goes along for programs: data and link.
	Content map[string]any
}
