package node

import (
	"tandem/node/printed"
	"tandem/payload"
)

// The streams that programs print to.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// printing is a run as the reader of what its code and processes print. Readers who follow the execution get it at once, as
// {"stdout": …} or {"stderr": …}, and each line becomes a line of the log. It is not output of the node.
type printing struct{ *run }

// print takes a piece of what is printed to a stream. A piece may end anywhere.
func (x *run) print(stream, text string) {
	if x.job.Out != nil && text != "" {
		x.printed.Take(stream, text, printing{x})
	}
}

// Piece sends a piece to those who follow the execution.
func (x printing) Piece(stream, text string) {
	raw, err := payload.Encode(map[string]string{stream: text})
	if err != nil {
		return // text is always JSON
	}
	if x.guarded() {
		raw = x.job.Redact.JSON(raw)
	}
	x.job.Out.Emit(raw)
}

// Line makes a line of the log.
func (x printing) Line(stream, text string) {
	level := Notice
	if stream == Stderr {
		level = Warn
	}
	x.log(level, text, map[string]any{"stream": stream})
}

// Full says in the log that it does not have all.
func (x printing) Full(stream string) {
	x.log(Warn, "more was printed than the log keeps; the rest is left out", map[string]any{"stream": stream, "limit": printed.Max})
}

// endLines makes lines of what was printed without an end of line.
func (x *run) endLines() { x.printed.EndLines(printing{x}, Stdout, Stderr) }

// endPrinted is called when the run is over.
func (x *run) endPrinted() {
	x.endLines()
	x.printed.Close()
}

// waits reports that the run waits for something that takes a while, in the log and to those who follow the execution.
func (x *run) waits(why string) {
	if x.job.Out == nil {
		return
	}
	x.log(Notice, why, nil)
	printing{x}.Piece("waits_for", why)
}
