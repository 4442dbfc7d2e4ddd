package local

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"tandem/credential"
	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/node"
	"tandem/payload"
	"tandem/store"
)

// said is what a run says besides its outcome: lines for the log, details for its record. The run writes it, as its
// [node.Out]; when the run has ended it is its owner's.
type said struct {
	owner   *owner
	attempt engine.Attempt
	node    string
	began   int64
	// first says that it is the work from its start, and not what follows a wait.
	first bool

	mu      sync.Mutex
	lines   []store.LogLine
	details map[string]any
	used    node.Usage
	// soon stores the lines of a run that goes on; nil while there are none.
	soon *time.Timer
	// writing is held while lines are stored, so that they are in the log in the order in which they were said.
	writing sync.Mutex
}

// After how many lines, and after what time, a run that goes on has its lines stored.
const (
	flushLines = 100
	flushAfter = 300 * time.Millisecond
)

// Emit implements node.Out.
func (s *said) Emit(chunk any) {
	if emitted := s.owner.host.opts.Emitted; emitted != nil {
		emitted(s.owner.ref, s.attempt, chunk)
	}
}

// Detail implements node.Out.
func (s *said) Detail(fields map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.details == nil {
		s.details = map[string]any{}
	}
	maps.Copy(s.details, fields)
}

// Used implements node.Out.
func (s *said) Used(u node.Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used.InputTokens += u.InputTokens
	s.used.OutputTokens += u.OutputTokens
	s.used.CachedTokens += u.CachedTokens
	s.used.Credits += u.Credits
}

// Log implements node.Out.
func (s *said) Log(level node.Level, message string, fields map[string]any) {
	if s.owner.host.debug {
		s.owner.host.opts.Log.Debug("a node says: "+message, "execution", s.owner.ref.Execution, "node", s.node, "level", string(level), "context", fields)
	}
	if s.log(level, message, fields) >= flushLines {
		s.flush()
	}
}

// Credential implements node.Out.
func (s *said) Credential(ctx context.Context, id string, types ...string) (credential.Opened, error) {
	credentials := s.owner.host.opts.Credentials
	if credentials == nil {
		return credential.Opened{}, fault.Newf(fault.CredentialMissing, "credential %q cannot be opened: there are none here", id)
	}
	return credentials(s.owner.principal())(ctx, id, types...)
}

// log keeps a line and says how many are kept.
func (s *said) log(level node.Level, message string, fields map[string]any) int {
	line, step := s.owner.lineOf(s.attempt.Activation, time.Now().UnixMilli())
	line.Level, line.Message = levelOf(level), message
	if step != "" {
		fields = maps.Clone(fields)
		if fields == nil {
			fields = map[string]any{}
		}
		fields[store.LogInnerStep] = step
	}
	if len(fields) > 0 {
		if raw, err := json.Marshal(fields); err == nil {
			line.Context = raw
		} else {
			line.Message += " (the context was left out: " + err.Error() + ")"
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
	if s.soon == nil {
		s.soon = time.AfterFunc(flushAfter, s.flush)
	}
	return len(s.lines)
}

// takeLines returns the lines that are not stored yet. The caller holds mu, and writing if it stores them.
func (s *said) takeLines() []store.LogLine {
	lines := s.lines
	s.lines = nil
	if s.soon != nil {
		s.soon.Stop()
		s.soon = nil
	}
	return lines
}

func levelOf(l node.Level) store.Level {
	switch l {
	case node.Debug:
		return store.LevelDebug
	case node.Warn:
		return store.LevelWarn
	case node.Error:
		return store.LevelError
	}
	return store.LevelInfo
}

// noteSaid records with a row what a run that ends with it has said, and what it has warned of.
func (o *owner) noteSaid(turn *host.Turn, s *said, warnings []dataflow.Warning, logs []store.LogLine) []store.LogLine {
	if s == nil {
		return logs
	}
	row := turn.Row()
	if fresh := o.fold.View().Unwarned(s.attempt.Activation, warnings); len(fresh) > 0 {
		raw, err := json.Marshal(fresh)
		if err != nil { // texts are always JSON
			o.host.opts.Log.Warn("warnings of a node left out", "execution", o.ref.Execution, "error", err)
		} else {
			row.Told = append(row.Told, host.Told{What: host.ToldWarnings, Activation: s.attempt.Activation, Detail: raw})
		}
		for _, w := range fresh {
			s.log(node.Warn, w.Message, map[string]any{"path": w.Path})
		}
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if view := o.fold.View().Open[s.attempt.Activation]; s.first && view != nil && s.began > view.Started+1 && view.Status == engine.NodeRunning {
		row.Told = append(row.Told, host.Told{What: host.ToldRan, Activation: s.attempt.Activation, Time: s.began})
	}
	if s.used != (node.Usage{}) {
		raw, err := json.Marshal(s.used)
		if err != nil { // numbers are always JSON, unless they are none
			o.host.opts.Log.Warn("usage left out", "execution", o.ref.Execution, "error", err)
		} else {
			row.Told = append(row.Told, host.Told{What: host.ToldUsage, Activation: s.attempt.Activation, Detail: raw})
		}
	}
	if len(s.details) > 0 {
		raw, err := json.Marshal(s.details)
		if err == nil {
			err = payload.Check(raw, payload.Limits{})
		}
		if err != nil {
			o.host.opts.Log.Warn("details of a node left out", "execution", o.ref.Execution, "activation", s.attempt.Activation, "error", err)
		} else {
			row.Told = append(row.Told, host.Told{What: host.ToldDetail, Activation: s.attempt.Activation, Detail: raw})
		}
	}
	return append(logs, s.takeLines()...)
}

// afterTimeout is how long a kind may take for what it does after a success.
const afterTimeout = time.Minute

// after lets a kind do what it does once its success is on disk. Nobody waits for it, and its failure is a line in the log
// of the node.
func (o *owner) after(m outcome) {
	o.host.running.Add(1)
	go func() {
		defer o.host.running.Done()
		ctx, cancel := context.WithTimeout(o.host.ctx, afterTimeout)
		defer cancel()
		if err := m.result.After(ctx); err != nil {
			m.said.Log(node.Warn, "what follows the node's success did not end well", map[string]any{"error": fault.From(err).Message})
		}
		m.said.flush()
	}()
}

// flush stores lines apart from a row: while the run goes on, and when it has ended and its outcome counts no longer.
func (s *said) flush() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	lines := s.takeLines()
	s.mu.Unlock()
	o := s.owner
	if len(lines) == 0 || o.host.ctx.Err() != nil { // a host that closes leaves the run to the next process
		return
	}
	if err := o.host.opts.Logs.Write(o.host.ctx, o.principal(), o.ref.Execution, lines); err != nil {
		o.host.opts.Log.Warn("lines of a node not stored", "execution", o.ref.Execution, "lines", len(lines), "error", err)
		return
	}
	if logged := o.host.opts.Logged; logged != nil {
		logged(o.ref, s.attempt, len(lines))
	}
}
