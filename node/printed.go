package node

import (
	"bytes"
	"strings"
	"sync"

	"tandem/payload"
)

// The streams that programs print to.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

const (
	// maxPrinted is how much of what a run prints to one stream is told; the rest is counted by whoever keeps it.
	maxPrinted = 64 << 10
	// maxPrintedLine is how long a line of the log becomes at most; a longer one is several.
	maxPrintedLine = 8 << 10
)

// printed takes what the code and the processes of a run print. Readers who follow the execution are told it as it comes, as
// {"stdout": …} or {"stderr": …}, and each line becomes a line of the log. It is not output of the node. What is printed after
// the run has ended is dropped. Its methods may be called by several goroutines.
type printed struct {
	mu      sync.Mutex
	closed  bool
	streams map[string]*printedStream
}

type printedStream struct {
	line  []byte // the last line, whose end has not come
	taken int
	full  bool
}

// print takes a piece of what is printed to a stream. A piece may end anywhere.
func (x *run) print(stream, text string) {
	if x.job.Out == nil || text == "" {
		return
	}
	p := &x.printed
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	if p.streams == nil {
		p.streams = map[string]*printedStream{}
	}
	s := p.streams[stream]
	if s == nil {
		s = &printedStream{}
		p.streams[stream] = s
	}
	if s.full {
		return
	}
	cut := len(text) > maxPrinted-s.taken
	text = text[:min(len(text), maxPrinted-s.taken)]
	s.taken += len(text)
	x.tellPrinted(stream, text)
	s.line = append(s.line, text...)
	for {
		end := bytes.IndexByte(s.line, '\n')
		if end < 0 && len(s.line) > maxPrintedLine {
			end = maxPrintedLine
		}
		if end < 0 {
			break
		}
		x.logPrinted(stream, s.line[:end])
		s.line = bytes.TrimPrefix(s.line[end:], []byte("\n"))
	}
	if cut {
		s.full = true
		x.logPrinted(stream, s.line)
		s.line = nil
		x.log(Warn, "more was printed than the log keeps; the rest is left out", map[string]any{"stream": stream, "limit": maxPrinted})
	}
}

// tellPrinted tells those who follow the execution.
func (x *run) tellPrinted(stream, text string) {
	raw, err := payload.Encode(map[string]string{stream: strings.ToValidUTF8(text, "\uFFFD")})
	if err != nil {
		return // text is always JSON
	}
	if x.guarded() {
		raw = x.job.Redact.JSON(raw)
	}
	x.job.Out.Emit(raw)
}

func (x *run) logPrinted(stream string, line []byte) {
	text := strings.TrimRight(strings.ToValidUTF8(string(line), "\uFFFD"), " \t\r")
	if text == "" {
		return
	}
	level := Notice
	if stream == Stderr {
		level = Warn
	}
	x.log(level, text, map[string]any{"stream": stream})
}

// endLines makes lines of what was printed without an end of line.
func (x *run) endLines() {
	x.printed.mu.Lock()
	defer x.printed.mu.Unlock()
	for _, stream := range []string{Stdout, Stderr} {
		if s := x.printed.streams[stream]; s != nil {
			x.logPrinted(stream, s.line)
			s.line = nil
		}
	}
}

// endPrinted says that the run is over.
func (x *run) endPrinted() {
	x.endLines()
	x.printed.mu.Lock()
	defer x.printed.mu.Unlock()
	x.printed.closed = true
}

// waits tells that the run waits for something that takes a while, in the log and to those who follow the execution.
func (x *run) waits(why string) {
	if x.job.Out == nil {
		return
	}
	x.log(Notice, why, nil)
	x.tellPrinted("waits_for", why)
}
