// Package live lets those who follow an execution at one process hear of what others do. Rows they read from the journal, whenever the
// database says that there are new ones ([store.News]). Output while it is made, and that lines were stored, is in no journal: a
// [Follower] asks for it with messages ([store.Wire]), and the [Teller] of each process that runs nodes sends it, as long as somebody
// wants it. Nothing is sent while nobody does, and no node waits for what is sent: it is taken from a hub, which keeps the end of it.
//
// It decides nothing, and what is lost of the messages is only told late: the end of an attempt is a row. It is not the place for what
// readers are told, which is package story. The wiring of a server imports it.
package live

import (
	"encoding/json"

	"tandem/engine"
	"tandem/host"
	"tandem/payload"
	"tandem/text"
)

// Channels of messages.
const (
	followChannel = "tandem_follow"
	pieceChannel  = "tandem_pieces"
)

// wanted is a message of a follower: which executions are followed. Asking is that of a teller, which wants to know.
type wanted struct {
	Asking bool       `json:"asking,omitempty"`
	Refs   []host.Ref `json:"refs,omitempty"`
	// New says that what there is so far is wanted, too.
	New bool `json:"new,omitempty"`
}

// pieces is a message of a teller: what an execution hands out.
type pieces struct {
	Ref     host.Ref      `json:"ref"`
	Outputs []outputPiece `json:"outputs,omitempty"`
	Logged  []loggedPiece `json:"logged,omitempty"`
}

type outputPiece struct {
	engine.Attempt
	Offset int64           `json:"offset,omitempty"`
	Text   string          `json:"text,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
}

type loggedPiece struct {
	engine.Attempt
	Lines int `json:"lines"`
}

func (p *pieces) addOutput(o *host.Output) {
	p.Outputs = append(p.Outputs, outputPiece{Attempt: o.Attempt, Offset: o.Offset, Text: o.Text, Data: o.Data})
}

func (p *pieces) empty() bool { return len(p.Outputs) == 0 && len(p.Logged) == 0 }

// maxText is how much text one message has. Longer texts come in several, one after the other.
const maxText = 64 << 10

// split divides what an execution hands out into messages that are not too long, in the same order.
func (p *pieces) split() (list []pieces) {
	part, size := pieces{Ref: p.Ref}, 0
	next := func(n int) {
		if size+n > maxText && !part.empty() {
			list = append(list, part)
			part, size = pieces{Ref: p.Ref}, 0
		}
		size += n
	}
	for _, o := range p.Outputs {
		for len(o.Text) > maxText {
			head := o
			head.Text = text.Head(o.Text, maxText)
			o.Offset, o.Text, o.Data = o.Offset+int64(len(head.Text)), o.Text[len(head.Text):], nil
			next(len(head.Text) + len(head.Data))
			part.Outputs = append(part.Outputs, head)
		}
		next(len(o.Text) + len(o.Data))
		part.Outputs = append(part.Outputs, o)
	}
	part.Logged = p.Logged
	return append(list, part)
}

// encode is a message as it is sent.
func encode(message any) (string, error) {
	raw, err := payload.Marshal(message)
	return string(raw), err
}
