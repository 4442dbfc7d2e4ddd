package engine

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// readCompleted reads what [NodeCompleted.append] has written, if no text in it has an escape and no connection has failed. It is the
// reading of json.Unmarshal without looking at types; everything else is left to that.
func readCompleted(text string) (f NodeCompleted, ok bool) {
	r := plainReader{left: text, ok: true}
	r.must(`{"activation":`)
	f.Activation = ActivationID(r.text())
	if r.may(`,"generation":`) {
		f.Generation = uint32(r.number(32))
	}
	r.must(`,"attempt":`)
	f.Attempt.Attempt = uint32(r.number(32))
	if r.may(`,"outputs":[`) {
		f.Outputs = make([]Output, 0, 1)
		for more := true; more && r.ok; more = r.may(",") {
			var o Output
			r.must(`{"key":`)
			o.Key = r.text()
			if r.may(`,"ref":`) {
				o.Ref = Ref(r.text())
			}
			r.must("}")
			f.Outputs = append(f.Outputs, o)
		}
		r.must("]")
	}
	if r.may(`,"settled":[`) {
		for more := true; more && r.ok; more = r.may(",") {
			var v Verdict
			r.must(`{"edge":`)
			v.Edge = int(r.number(31))
			v.Live = r.may(`,"live":true`)
			if r.may(`,"ref":`) {
				v.Ref = Ref(r.text())
			}
			r.must("}")
			f.Settled = append(f.Settled, v)
		}
		r.must("]")
	}
	r.must("}")
	return f, r.ok && r.left == ""
}

// readCreated reads the first fact of a journal as json.Marshal writes it, if no text in it has an escape and it has neither a program
// nor questions of its own. Everything else is left to json.Unmarshal.
func readCreated(text string) (f ExecutionCreated, ok bool) {
	r := plainReader{left: text, ok: true}
	r.must(`{"semantics":`)
	f.Semantics = int(r.number(31))
	r.must(`,"execution":`)
	f.Execution = r.text()
	if r.may(`,"revision":`) {
		f.Revision = r.text()
	}
	if r.may(`,"trigger":`) {
		f.Trigger = r.text()
	}
	if r.may(`,"start_from":`) {
		f.StartFrom = r.text()
	}
	if r.may(`,"timeout_ms":`) {
		f.TimeoutMS = int64(r.number(63))
	}
	if r.may(`,"depth":`) {
		f.Depth = int(r.number(31))
	}
	if r.may(`,"input":`) {
		f.Input = Ref(r.text())
	}
	r.must("}")
	return f, r.ok && r.left == ""
}

// plainReader reads text that is written in one certain way. Ok says that it is so far.
type plainReader struct {
	left string
	ok   bool
}

// may reads something if it comes next.
func (r *plainReader) may(what string) bool {
	left, found := strings.CutPrefix(r.left, what)
	r.left = left
	return found
}

// must reads something that comes next.
func (r *plainReader) must(what string) { r.ok = r.may(what) && r.ok }

// text reads a JSON string without escapes.
func (r *plainReader) text() string {
	if !r.may(`"`) {
		r.ok = false
		return ""
	}
	for i := range len(r.left) {
		switch c := r.left[i]; {
		case c == '"':
			text := r.left[:i]
			r.left, r.ok = r.left[i+1:], r.ok && utf8.ValidString(text)
			return text
		case c < ' ' || c == '\\':
			r.ok = false
			return ""
		}
	}
	r.ok = false
	return ""
}

// number reads a whole number that is not negative and has at most so many bits.
func (r *plainReader) number(bits int) uint64 {
	end := 0
	for end < len(r.left) && '0' <= r.left[end] && r.left[end] <= '9' {
		end++
	}
	n, err := strconv.ParseUint(r.left[:end], 10, bits)
	r.ok = r.ok && err == nil && (end == 1 || r.left[0] != '0')
	r.left = r.left[end:]
	return n
}
