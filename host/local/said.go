package local

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

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
}

// flushLines is after how many lines a long run stores them before it ends.
const flushLines = 100

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
	lines := s.log(level, message, fields)
	if len(lines) == 0 {
		return
	}
	o := s.owner
	if err := o.host.opts.Logs.Write(o.host.ctx, o.principal(), o.ref.Execution, lines); err != nil {
		o.host.opts.Log.Warn("lines of a node not stored", "execution", o.ref.Execution, "lines", len(lines), "error", err)
	}
}

// Credential implements node.Out.
func (s *said) Credential(ctx context.Context, id string, types ...string) (node.Credential, func(), error) {
	open := s.owner.host.opts.Credential
	if open == nil {
		return node.Credential{}, nil, fault.Newf(fault.CredentialMissing, "credential %q cannot be opened: there are none here", id)
	}
	return open(ctx, s.owner.principal(), id, types...)
}

// log keeps a line. When there are many it hands them out to be stored.
func (s *said) log(level node.Level, message string, fields map[string]any) []store.LogLine {
	line := store.LogLine{
		Activation: string(s.attempt.Activation), NodeID: s.node, Time: time.Now().UnixMilli(), Level: levelOf(level), Message: message,
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
	if len(s.lines) < flushLines {
		return nil
	}
	lines := s.lines
	s.lines = nil
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

// note records with a row what a run that ends with it has said, and what it has warned of.
func (o *owner) note(turn *host.Turn, s *said, warnings []dataflow.Warning, logs []store.LogLine) []store.LogLine {
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
			logs = append(logs, s.log(node.Warn, w.Message, map[string]any{"path": w.Path})...)
		}
	}
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
	lines := s.lines
	s.lines = nil
	return append(logs, lines...)
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

// flush stores the lines that were written after the run had ended.
func (s *said) flush() {
	s.mu.Lock()
	lines := s.lines
	s.lines = nil
	s.mu.Unlock()
	if len(lines) == 0 {
		return
	}
	o := s.owner
	if err := o.host.opts.Logs.Write(o.host.ctx, o.principal(), o.ref.Execution, lines); err != nil {
		o.host.opts.Log.Warn("lines of a node not stored", "execution", o.ref.Execution, "lines", len(lines), "error", err)
	}
}
