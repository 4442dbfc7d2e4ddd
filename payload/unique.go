package payload

import (
	"bytes"
	"encoding/json"
)

// fewKeys are found by looking through them; more have an index.
const fewKeys = 16

// keySet is the keys of one object while it is checked: those of the checker from first on.
type keySet struct {
	first int
	index map[string]bool
}

// again adds a key, as it is written, and says whether it was there before.
func (s *keySet) again(c *checker, written []byte) bool {
	if bytes.IndexByte(written, '\\') >= 0 {
		written = []byte(words(written))
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
	c.names = append(c.names, written)
	if own := c.names[s.first:]; len(own) > fewKeys {
		s.index = make(map[string]bool, 2*len(own))
		for _, name := range own {
			s.index[string(name)] = true
		}
	}
	return false
}

// words are the words of a string that was checked, without its quotes.
func words(written []byte) string {
	var text string
	if json.Unmarshal(append(append([]byte{'"'}, written...), '"'), &text) != nil {
		return string(written) // cannot happen: it was checked
	}
	return text
}

// LastKeys is a value whose objects have no key twice: of equal keys the last value stays, in the place of the first. What services
// and code answer goes through it, since nobody there can be asked to write it again. A value without such keys, or one that cannot be
// read, comes back as it is.
func LastKeys(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || bytes.IndexByte(raw, '{') < 0 || bytes.IndexByte(raw, ':') < 0 {
		return raw
	}
	if wrong, ok := Check(raw, Limits{Unique: true, MaxDepth: len(raw), MaxNumber: len(raw)}).(*Error); !ok || !wrong.Repeated {
		return raw
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var out bytes.Buffer
	if rewrite(d, &out) != nil {
		return raw
	}
	return out.Bytes()
}

// rewrite copies the next value of a decoder.
func rewrite(d *json.Decoder, out *bytes.Buffer) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	opening, container := token.(json.Delim)
	if !container {
		raw, err := Marshal(token)
		out.Write(raw)
		return err
	}
	var keys []string
	values := map[string][]byte{}
	var items [][]byte
	for d.More() {
		key := ""
		if opening == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			key = name.(string)
		}
		var value bytes.Buffer
		if err := rewrite(d, &value); err != nil {
			return err
		}
		if opening == '[' {
			items = append(items, value.Bytes())
			continue
		}
		if _, again := values[key]; !again {
			keys = append(keys, key)
		}
		values[key] = value.Bytes()
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if opening == '[' {
		out.WriteByte('[')
		out.Write(bytes.Join(items, []byte{','}))
		out.WriteByte(']')
		return nil
	}
	out.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := Marshal(key)
		if err != nil {
			return err
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(values[key])
	}
	out.WriteByte('}')
	return nil
}
