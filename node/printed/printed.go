// Package printed takes what a run says while it goes on: what its code and processes print, piece by piece, of which it makes lines, and
// the chunks of output that it emits.
package printed

import (
	"bytes"
	"strings"
	"sync"
)

const (
	// Max is how much of what a run prints to one stream is told; the rest is left out.
	Max = 64 << 10
	// maxLine is how long a line becomes at most; a longer one is several.
	maxLine = 8 << 10
)

// Reader is told what is printed. It is called by one goroutine at a time.
type Reader interface {
	// Piece is told a piece as it comes. It may end anywhere.
	Piece(stream, text string)
	// Line is told a line that is not empty, without its end.
	Line(stream, text string)
	// Full is told once that more was printed to a stream than is kept.
	Full(stream string)
}

// Streams takes what is printed to streams. What is printed after the end is dropped. Its methods may be called by several goroutines.
type Streams struct {
	mu      sync.Mutex
	closed  bool
	streams map[string]*stream
}

type stream struct {
	line  []byte // the last line, whose end has not come
	taken int
	full  bool
}

// Take takes a piece of what is printed to a stream.
func (p *Streams) Take(name, text string, to Reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	if p.streams == nil {
		p.streams = map[string]*stream{}
	}
	s := p.streams[name]
	if s == nil {
		s = &stream{}
		p.streams[name] = s
	}
	if s.full {
		return
	}
	cut := len(text) > Max-s.taken
	text = text[:min(len(text), Max-s.taken)]
	s.taken += len(text)
	to.Piece(name, strings.ToValidUTF8(text, "\uFFFD"))
	s.line = append(s.line, text...)
	for {
		end := bytes.IndexByte(s.line, '\n')
		if end < 0 && len(s.line) > maxLine {
			end = maxLine
		}
		if end < 0 {
			break
		}
		s.tellLine(name, s.line[:end], to)
		s.line = bytes.TrimPrefix(s.line[end:], []byte("\n"))
	}
	if cut {
		s.full = true
		s.tellLine(name, s.line, to)
		s.line = nil
		to.Full(name)
	}
}

func (*stream) tellLine(name string, line []byte, to Reader) {
	if text := strings.TrimRight(strings.ToValidUTF8(string(line), "\uFFFD"), " \t\r"); text != "" {
		to.Line(name, text)
	}
}

// EndLines makes lines of what was printed to streams without an end of line.
func (p *Streams) EndLines(to Reader, names ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		if s := p.streams[name]; s != nil {
			s.tellLine(name, s.line, to)
			s.line = nil
		}
	}
}

// Close says that the run is over.
func (p *Streams) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}
