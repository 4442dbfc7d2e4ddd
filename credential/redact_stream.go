package credential

import (
	"cmp"
	"io"
	"slices"
)

// Stream redacts text that arrives in pieces. It holds back only what may be the beginning of a secret, so ordinary
// text passes at once. One goroutine uses a stream; secrets that are held later count from the next piece on.
type Stream struct {
	redactor *Redactor
	matcher  *matcher
	state    int32
	pending  []byte // arrived and not given out
	spans    []span // in pending
	marked   bool   // what was given out last is a mark, and what continues it needs no second one
}

// Stream begins a text.
func (r *Redactor) Stream() *Stream { return &Stream{redactor: r} }

// Push takes a piece and returns what can go out.
func (s *Stream) Push(piece string) string { return string(s.push([]byte(piece))) }

// End returns what was held back, and is ready for another text.
func (s *Stream) End() string { return string(s.end()) }

func (s *Stream) push(piece []byte) []byte {
	if m := s.redactor.matcher(); m != s.matcher {
		known := s.spans
		s.matcher = m
		s.state, s.spans = scan(m, 0, s.pending, 0, nil)
		s.spans = union(s.spans, known)
	}
	base := len(s.pending)
	s.pending = append(s.pending, piece...)
	s.state, s.spans = scan(s.matcher, s.state, piece, base, s.spans)
	// Nothing continues a node without children: what counts is the suffix, and a whole secret need not wait for more.
	for s.state != 0 && s.matcher.nodes[s.state].children == 0 {
		s.state = s.matcher.nodes[s.state].fail
	}
	return s.emit(len(s.pending) - int(s.matcher.nodes[s.state].depth))
}

func (s *Stream) end() []byte {
	out := s.emit(len(s.pending))
	s.state, s.marked = 0, false
	return out
}

// emit gives out the first n pending bytes. No secret that is still to come begins among them: the state's depth is the
// length of the longest end of the text that begins a pattern.
func (s *Stream) emit(n int) []byte {
	var out []byte
	at, done := 0, 0
	for _, found := range s.spans {
		if found.start >= n {
			break
		}
		if found.start > at {
			out, s.marked = append(out, s.pending[at:found.start]...), false
		}
		if !s.marked {
			out, s.marked = append(out, Mark...), true
		}
		at = min(found.end, n)
		if found.end > n {
			break
		}
		done++
	}
	if at < n {
		out, s.marked = append(out, s.pending[at:n]...), false
	}
	s.spans = slices.Delete(s.spans, 0, done)
	for i, found := range s.spans {
		s.spans[i] = span{max(found.start-n, 0), found.end - n}
	}
	rest := copy(s.pending, s.pending[n:])
	clear(s.pending[rest:])
	s.pending = s.pending[:rest]
	return out
}

// union merges two lists of spans.
func union(a, b []span) []span {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y span) int { return cmp.Compare(x.start, y.start) })
	var out []span
	for _, s := range all {
		if last := len(out) - 1; last >= 0 && out[last].end >= s.start {
			out[last].end = max(out[last].end, s.end)
			continue
		}
		out = append(out, s)
	}
	return out
}

// Writer redacts what is written through it. Close writes what was held back and leaves the writer below open.
type Writer struct {
	stream *Stream
	to     io.Writer
	err    error // the first error; nothing is written after it
}

// Writer begins a text that goes to w. One goroutine uses it.
func (r *Redactor) Writer(w io.Writer) *Writer { return &Writer{stream: r.Stream(), to: w} }

// Write takes all of p, or reports that the writer below failed.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.err = w.forward(w.stream.push(p)); w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// Close writes what was held back.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	w.err = w.forward(w.stream.end())
	return w.err
}

func (w *Writer) forward(out []byte) error {
	if len(out) == 0 {
		return nil
	}
	_, err := w.to.Write(out)
	return err
}
