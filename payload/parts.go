package payload

import (
	"encoding/json"
	"slices"
)

// Part is a field of an object that is kept beside the rest of it, so that objects which have it in common share it.
type Part struct {
	// At is the position of the field among all fields of the object.
	At int
	Member
}

// Split takes the fields that are marked as shared out of an object's fields. The rest is an object of its own.
func Split(members []Member, shared func(m Member) bool) (rest json.RawMessage, parts []Part) {
	own := make([]Member, 0, len(members))
	for i, m := range members {
		if shared(m) {
			parts = append(parts, Part{At: i, Member: m})
			continue
		}
		own = append(own, m)
	}
	return AppendObject(nil, own), parts
}

// JoinedMembers are the fields of an object of which some are kept beside the rest. They share the memory of both.
func JoinedMembers(rest json.RawMessage, parts []Part) []Member {
	members := Members(rest)
	for _, p := range parts { // in the order of their positions
		members = slices.Insert(members, min(p.At, len(members)), p.Member)
	}
	return members
}

// Join puts an object together again; without parts it is the rest.
func Join(rest json.RawMessage, parts []Part) json.RawMessage {
	if len(parts) == 0 {
		return rest
	}
	members := JoinedMembers(rest, parts)
	size := 2
	for _, m := range members {
		size += len(m.Key) + len(m.Value) + 8
	}
	return AppendObject(make([]byte, 0, size), members)
}
