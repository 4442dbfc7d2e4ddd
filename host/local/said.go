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
	"tandem/host/lines"
	"tandem/node"
	"tandem/payload"
	"tandem/store"
)

// said is what a run says besides its outcome: lines for the log, details for its record. The run writes it, as its [node.Out]; when the
// run has ended, the owner reads it.
type said struct {
	owner   *owner
	attempt engine.Attempt
	node    string
	began   int64
	// first says that it is the work from its start, and not what follows a wait.
	first bool

	// lines are those that are not stored yet.
	lines lines.Kept

	mu      sync.Mutex
	details map[string]any
	used    node.Usage
}

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
	if s.lines.Add(&s.owner.host.room, s.line(level, message, fields), s.flush) {
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

// line is a line of the run.
func (s *said) line(level node.Level, message string, fields map[string]any) store.LogLine {
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
	return line
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
	logs = append(logs, s.lines.Hand(&o.host.room)...)
	row := turn.Row()
	if fresh := o.fold.View().Unwarned(s.attempt.Activation, warnings); len(fresh) > 0 {
		raw, err := json.Marshal(fresh)
		if err != nil { // texts are always JSON
			o.host.opts.Log.Warn("warnings of a node left out", "execution", o.ref.Execution, "error", err)
		} else {
			row.Told = append(row.Told, host.Told{What: host.ToldWarnings, Activation: s.attempt.Activation, Detail: raw})
		}
		for _, w := range fresh {
			logs = append(logs, s.line(node.Warn, w.Message, map[string]any{"path": w.Path}))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if view := o.fold.View().Open[s.attempt.Activation]; s.first && view != nil && s.began > view.Started+1 &&
		view.Status == engine.NodeRunning {
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
	return logs
}

// afterTimeout is how long a kind may take for what it does after a success.
const afterTimeout = time.Minute

// after lets a kind do what it does once its success is on disk. Nobody waits for it, and its failure is a line in the log of the node.
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

// flush stores lines apart from a row: while the run goes on, and when it has ended and its outcome counts no longer. While the database is
// away they are kept.
func (s *said) flush() {
	o := s.owner
	s.lines.Store(&o.host.room, s.flush, func(list []store.LogLine) (later bool) {
		if o.host.ctx.Err() != nil { // a host that closes leaves the run to the next process
			return false
		}
		if err := o.host.opts.Logs.Write(o.host.ctx, o.principal(), o.ref.Execution, list); err != nil {
			later = passes(err)
			o.host.opts.Log.Warn("lines of a node not stored", "execution", o.ref.Execution, "lines", len(list), "tried_again", later, "error", err)
			return later
		}
		if logged := o.host.opts.Logged; logged != nil {
			logged(o.ref, s.attempt, len(list))
		}
		return false
	})
}
