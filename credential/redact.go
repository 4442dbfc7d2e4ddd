package credential

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"

	"tandem/fault"
	"tandem/payload"
)

// Mark stands where a secret was.
const Mark = "[redacted]"

// MinSecret is the length in bytes of the shortest secret that is taken out. Shorter ones would make ordinary text
// unreadable and, by what is missing in it, tell what they are.
const MinSecret = 6

// MaxSecret is the length in bytes up to which a secret is looked for: of a longer one, only its beginning is. No text of
// a valid credential is longer.
const MaxSecret = 16 << 10

// maxRetired is how many secrets nobody holds any more are tolerated before they are forgotten.
const maxRetired = 64

// Redactor replaces the secrets it holds by [Mark], in every common encoding: JSON (also inside a string of JSON), the
// escapes of addresses and HTML, hex, and base64 wherever in the encoded data the secret stands. What two secrets cover
// together disappears as a whole. Not found are encodings of encodings, base64 broken into lines, and secrets that are
// shorter than [MinSecret] or part of the mark.
//
// A redactor serves one workspace, or one execution. Sharing one between workspaces would let each find out by trial
// what the others hold. The zero value holds nothing and is ready; it is safe for concurrent use.
type Redactor struct {
	current atomic.Pointer[matcher] // nil when held has changed

	mu      sync.Mutex
	held    map[string]*heldSecret
	retired int // how many in held have no holder
}

// heldSecret belongs to Redactor.mu.
type heldSecret struct {
	holders int
	forms   []string
}

// Hold adds secrets until the returned function is called. A secret held several times stays until the last release,
// and usually longer: forgetting is lazy, so that opening the same credential over and over costs nothing.
func (r *Redactor) Hold(secrets ...string) (release func()) {
	var keys []string
	for _, secret := range secrets {
		keys = append(keys, lookedFor(secret)...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil {
		r.held = map[string]*heldSecret{}
	}
	for _, key := range keys {
		h := r.held[key]
		switch {
		case h == nil:
			h = &heldSecret{forms: forms(key)}
			r.held[key] = h
			r.current.Store(nil)
		case h.holders == 0:
			r.retired--
		}
		h.holders++
	}
	var once sync.Once
	return func() { once.Do(func() { r.release(keys) }) }
}

func (r *Redactor) release(keys []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range keys {
		h := r.held[key]
		h.holders--
		if h.holders == 0 {
			r.retired++
		}
	}
	if r.retired <= maxRetired || r.retired <= len(r.held)/2 {
		return
	}
	for key, h := range r.held {
		if h.holders == 0 {
			delete(r.held, key)
		}
	}
	r.retired = 0
	r.current.Store(nil)
}

// lookedFor is what a secret is searched by: itself, itself without the space around it, and its longer lines, since
// keys of several lines are often printed line by line.
func lookedFor(secret string) []string {
	candidates := []string{secret, strings.TrimSpace(secret)}
	if strings.Contains(candidates[1], "\n") {
		for line := range strings.Lines(candidates[1]) {
			if line = strings.TrimSpace(line); len(line) >= 2*MinSecret && !strings.HasPrefix(line, "-----") {
				candidates = append(candidates, line)
			}
		}
	}
	var out []string
	for i, c := range candidates {
		c = c[:min(len(c), MaxSecret)]
		if len(c) >= MinSecret && !strings.Contains(Mark, c) && (i == 0 || c != secret) {
			out = append(out, c)
		}
	}
	return out
}

// matcher returns one that knows everything held when it was called, building it if something changed.
func (r *Redactor) matcher() *matcher {
	if m := r.current.Load(); m != nil {
		return m
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.current.Load(); m != nil {
		return m
	}
	var patterns []string
	for _, h := range r.held {
		patterns = append(patterns, h.forms...)
	}
	m := newMatcher(patterns)
	r.current.Store(m)
	return m
}

// Text returns text without secrets; itself when there are none in it.
func (r *Redactor) Text(text string) string {
	_, spans := scan(r.matcher(), 0, text, 0, nil)
	if len(spans) == 0 {
		return text
	}
	return string(replace(make([]byte, 0, len(text)+len(Mark)*len(spans)), text, spans))
}

// Bytes is Text for bytes. It does not change its argument, and returns it when there is nothing to replace.
func (r *Redactor) Bytes(text []byte) []byte {
	_, spans := scan(r.matcher(), 0, text, 0, nil)
	if len(spans) == 0 {
		return text
	}
	return replace(make([]byte, 0, len(text)+len(Mark)*len(spans)), text, spans)
}

func replace[T string | []byte](out []byte, text T, spans []span) []byte {
	at := 0
	for _, s := range spans {
		out = append(out, text[at:s.start]...)
		out = append(out, Mark...)
		at = s.end
	}
	return append(out, text[at:]...)
}

// JSON returns a document without secrets that is still valid: strings and names are looked at as what they mean,
// however they are escaped, and a number that holds a secret becomes the mark as a string. A secret is found inside one
// string, name or number, not across several. What is not valid JSON is treated as text.
func (r *Redactor) JSON(document json.RawMessage) json.RawMessage {
	m := r.matcher()
	if len(m.nodes) == 1 {
		return document
	}
	_, spans := scan(m, 0, []byte(document), 0, nil)
	if len(spans) == 0 && bytes.IndexByte(document, '\\') < 0 {
		return document
	}
	if !json.Valid(document) {
		return replace(nil, []byte(document), spans)
	}
	out := make([]byte, 0, len(document)+len(Mark)*len(spans))
	for at := 0; at < len(document); {
		end := at + tokenLength(document[at:])
		for len(spans) > 0 && spans[0].end <= at {
			spans = spans[1:]
		}
		token, touched := document[at:end], len(spans) > 0 && spans[0].start < end
		switch {
		case token[0] == '"' && (touched || bytes.IndexByte(token, '\\') >= 0):
			out = m.appendString(out, token)
		case token[0] != '"' && touched:
			out = m.appendPlain(out, token)
		default:
			out = append(out, token...)
		}
		at = end
	}
	return out
}

// tokenLength returns the length of what begins a piece of valid JSON: a string, or all up to the next string.
func tokenLength(data []byte) int {
	if data[0] != '"' {
		if next := bytes.IndexByte(data, '"'); next >= 0 {
			return next
		}
		return len(data)
	}
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// appendPlain appends structure, numbers and words; those that hold a secret become strings.
func (m *matcher) appendPlain(out, data []byte) []byte {
	structure := func(c byte) bool { return strings.IndexByte(" \t\r\n,:[]{}", c) >= 0 }
	for at := 0; at < len(data); {
		end := at + 1
		for !structure(data[at]) && end < len(data) && !structure(data[end]) {
			end++
		}
		if _, found := scan(m, 0, data[at:end], 0, nil); len(found) > 0 {
			out = append(out, `"`+Mark+`"`...)
		} else {
			out = append(out, data[at:end]...)
		}
		at = end
	}
	return out
}

// appendString appends a string literal without secrets.
func (m *matcher) appendString(out, literal []byte) []byte {
	_, raw := scan(m, 0, literal[1:len(literal)-1], 0, nil)
	if bytes.IndexByte(literal, '\\') < 0 {
		out = append(out, '"')
		out = replace(out, literal[1:len(literal)-1], raw)
		return append(out, '"')
	}
	var text string
	if err := json.Unmarshal(literal, &text); err != nil {
		return append(out, `"`+Mark+`"`...) // not reached for valid JSON, and safe if it were
	}
	if _, spans := scan(m, 0, text, 0, nil); len(spans) > 0 {
		literal = payload.Quote(string(replace(nil, text, spans)))
		_, raw = scan(m, 0, literal[1:len(literal)-1], 0, nil)
	}
	if len(raw) > 0 { // the escapes themselves spell a secret
		return append(out, `"`+Mark+`"`...)
	}
	return append(out, literal...)
}

// Fault returns an error without secrets in its message, detail and facts. Its cause is dropped: nobody knows what that
// would print.
func (r *Redactor) Fault(e *fault.Error) *fault.Error {
	if e == nil {
		return nil
	}
	out := e.WithCause(nil)
	out.Message, out.Detail = r.Text(e.Message), r.Text(e.Detail)
	if len(e.Details) == 0 {
		return out
	}
	data, err := json.Marshal(e.Details)
	if err != nil { // facts that cannot be written could not be sent either
		out.Details = nil
		return out
	}
	if clean := r.JSON(data); !bytes.Equal(clean, data) {
		out.Details = nil
		if err := json.Unmarshal(clean, &out.Details); err != nil {
			out.Details = nil
		}
	}
	return out
}
