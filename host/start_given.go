package host

import (
	"context"
	"encoding/json"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/fault"
	"tandem/payload"
)

// A child is mostly started with the input of its parent, large fields included. So the first row of such a child has its input as a value
// of its own, after the start: large fields are kept beside it, under the names that they have in the journal of the parent.

// givenValue is the place of that value.
const givenValue = 1

// GivenStart is a start with an input whose large fields are kept beside the rest. They share memory with the values they come from.
func GivenStart(s Start, rest json.RawMessage, parts []payload.Part) Start {
	s.Initial = payload.Join(rest, parts)
	s.Trigger, s.rest, s.beside, s.Given = s.Initial, rest, parts, false
	return s
}

// writeGiven encodes a start that has an input of its own.
func writeGiven(s Start) (WrittenStart, error) {
	kept := s
	kept.Initial, kept.Trigger, kept.Given = nil, nil, true
	raw, err := json.Marshal(&kept)
	return WrittenStart{raw: raw, read: s, known: s.plainLists()}, err
}

// entry are the fields of what the execution begins with, if large ones of them are kept apart; nil otherwise.
func (s *Start) entry() []payload.Member {
	if len(s.beside) == 0 {
		return nil
	}
	return payload.JoinedMembers(s.rest, s.beside)
}

// gives says whether a row begins an execution whose input is a value of its own.
func (r *Row) gives() bool {
	if r.Seq != 1 || len(r.Facts) == 0 || len(r.Values) <= givenValue || len(r.Beside[givenValue]) == 0 {
		return false
	}
	_, created := r.Facts[0].(engine.ExecutionCreated)
	return created && gjson.GetBytes(r.Values[0], "given").Bool()
}

// givenStart reads the input of a start from the value after it.
func (f *Fold) givenStart(start Start) (Start, error) {
	rest, parts, err := f.fetch(Place{Seq: 1, N: givenValue}.Ref())
	if err != nil {
		return start, err
	}
	return GivenStart(start, rest, parts), nil
}

// givenStart is that of a row which has the fields of the input at hand.
func (r *Row) givenStart(start Start) (Start, error) {
	if !r.gives() {
		return start, fault.New(fault.Unreadable, "the first row of an execution holds no input")
	}
	parts, err := r.Parts(givenValue, func(b Blob) (json.RawMessage, error) {
		return nil, fault.Newf(fault.Internal, "the large value %q is not at hand", b.Hash)
	})
	if err != nil {
		return start, err
	}
	return GivenStart(start, r.Values[givenValue], parts), nil
}

// loadGiven reads the fields of the input that the first row names.
func (j Journal) loadGiven(ctx context.Context, r *Row) error {
	for i := range r.Beside[givenValue] {
		field := &r.Beside[givenValue][i]
		if field.value != nil {
			continue
		}
		value, err := j.Source.Blob(ctx, j.Principal, field.Blob)
		if err != nil {
			return err
		}
		field.value = value
	}
	return nil
}
