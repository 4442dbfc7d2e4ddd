package payload

import (
	"bytes"
	"encoding/json"
)

// fewKeys are found by looking through them; more have an index.
const fewKeys = 16

// usualKeys is how many keys there is room for when the first is seen.
const usualKeys = 8

// keySet is the keys of one object while it is checked: those of the checker from first on.
type keySet struct {
	first int
	index map[string]bool
}

// again adds a key, as it is written, and says whether it was there before.
func (s *keySet) again(c *checker, written []byte) bool {
	if bytes.IndexByte(written, '\\') >= 0 {
		written = []byte(Unquote(written))
	}
	switch {
	case s.index != nil:
		if s.index[string(written)] {
			return true
		}
		s.index[string(written)] = true
		return false
	default:
		for _, name := range c.names[s.first:] {
			if bytes.Equal(name, written) {
				return true
			}
		}
	}
	if c.names == nil {
		c.names = make([][]byte, 0, usualKeys)
	}
	c.names = append(c.names, written)
	if own := c.names[s.first:]; len(own) > fewKeys {
		s.index = make(map[string]bool, 2*len(own))
		for _, name := range own {
			s.index[string(name)] = true
		}
	}
	return false
}

// LastKeys is a value whose objects have no key twice: of equal keys the last value stays, in the place of the first. What services
// and code answer goes through it, since nobody there can be asked to write it again. A value without such keys, or one that cannot be
// read, comes back as it is.
func LastKeys(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || bytes.IndexByte(raw, '{') < 0 || bytes.IndexByte(raw, ':') < 0 {
		return raw
	}
	limits := Limits{MaxDepth: len(raw), MaxNumber: len(raw), Unique: true}
	if wrong, ok := Check(raw, limits).(*Error); !ok || !wrong.Repeated {
		return raw
	}
	if limits.Unique = false; Check(raw, limits) != nil { // what follows the second key was not looked at
		return raw
	}
	return appendLast(make([]byte, 0, len(raw)), raw)
}

// appendLast copies a value without its repeated keys.
func appendLast(dst, raw []byte) []byte {
	switch raw = raw[blank(raw, 0):]; raw[0] {
	case '{':
		members := Members(raw)
		for i := range members {
			members[i].Value = appendLast(nil, members[i].Value)
		}
		return AppendObject(dst, members)
	case '[':
		items := Items(raw)
		for i := range items {
			items[i] = appendLast(nil, items[i])
		}
		return AppendList(dst, items)
	}
	return append(dst, bytes.TrimRight(raw, " \t\r\n")...)
}
