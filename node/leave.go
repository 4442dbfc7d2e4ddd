package node

import (
	"context"
	"encoding/json"
	"slices"

	"tandem/credential"
	"tandem/dataflow"
	"tandem/fault"
	"tandem/payload"
)

// What leaves a run besides its outcome, and what must not leave it: the secrets of the credentials it has opened.

func (x *run) credential(ctx context.Context, id string, types ...string) (credential.Opened, error) {
	if id == "" {
		return credential.Opened{}, fault.New(fault.CredentialMissing, "configurations.credential_id: the node needs a credential; choose one")
	}
	if x.job.Out == nil {
		return credential.Opened{}, fault.Newf(fault.CredentialMissing, "credential %q cannot be opened: there are no credentials here", id)
	}
	c, err := x.job.Out.Credential(ctx, id, types...)
	if err != nil {
		return credential.Opened{}, err
	}
	x.opened = append(x.opened, c.Keep())
	return c, nil
}

// release releases the credentials that the run has opened.
func (x *run) release() {
	for _, release := range x.opened {
		if release != nil {
			release()
		}
	}
	x.opened = nil
}

// guarded says whether the run knows secrets.
func (x *run) guarded() bool { return len(x.opened) > 0 && x.job.Redact != nil }

// clean removes secrets from outputs, and all but the last of equal keys, so that every reader sees the same.
func (x *run) clean(outputs Done) Done {
	if outputs == nil || !x.guarded() && isClean(outputs) {
		return outputs
	}
	out := make(Done, len(outputs))
	for key, value := range outputs { // order does not matter: one entry per key
		if x.guarded() {
			value = x.job.Redact.JSON(value)
		}
		out[key] = payload.LastKeys(value)
	}
	return out
}

// isClean says whether no output has a key twice.
func isClean(outputs Done) bool {
	for _, value := range outputs { // order does not matter: all or not
		if last := payload.LastKeys(value); len(value) > 0 && &last[0] != &value[0] {
			return false // it was written again
		}
	}
	return true
}

func (x *run) emit(chunk any) {
	if x.job.Out == nil || x.ctx.Err() != nil { // what an attempt says after it was stopped is dropped
		return
	}
	if text, ok := chunk.(string); ok {
		if x.guarded() {
			text = x.job.Redact.Text(text)
		}
		x.chunks.Add(text)
		x.job.Out.Emit(text)
		return
	}
	raw, err := payload.Encode(chunk)
	if err != nil {
		x.log(Warn, "an update was left out: JSON cannot hold it", map[string]any{"error": err.Error()})
		return
	}
	if x.guarded() {
		raw = x.job.Redact.JSON(raw)
	}
	x.chunks.Put(raw)
	x.job.Out.Emit(raw)
}

func (x *run) log(level Level, message string, fields map[string]any) {
	if x.job.Out == nil {
		return
	}
	if x.guarded() {
		message, fields = x.job.Redact.Text(message), x.cleanFields(fields)
	}
	x.job.Out.Log(level, message, fields)
}

// maxWarnings is how many warnings one run may leave.
const maxWarnings = 20

func (x *run) warn(path, message string) {
	x.warning.Lock()
	defer x.warning.Unlock()
	w := dataflow.Warning{Path: path, Message: message}
	if len(x.warnings) < maxWarnings && !slices.Contains(x.warnings, w) {
		x.warnings = append(x.warnings, w)
	}
}

// warned are the warnings of the run, without the secrets it knows.
func (x *run) warned() []dataflow.Warning {
	x.warning.Lock()
	defer x.warning.Unlock()
	list := slices.Concat(x.traced, x.warnings)
	for _, r := range x.absent() {
		if w := (dataflow.Warning{Path: r.at, Message: r.says}); !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	list = list[:min(len(list), maxWarnings)]
	if x.guarded() {
		for i := range list {
			list[i].Message = x.job.Redact.Text(list[i].Message)
		}
	}
	return list
}

func (x *run) detail(fields map[string]any) {
	if x.job.Out == nil {
		return
	}
	if x.guarded() {
		fields = x.cleanFields(fields)
	}
	x.job.Out.Detail(fields)
}

func (x *run) used(u Usage) {
	if x.job.Out != nil {
		x.job.Out.Used(u)
	}
}

func (x *run) cleanFields(fields map[string]any) map[string]any {
	out := make(map[string]any, len(fields))
	for name, value := range fields { // order does not matter: one entry per name
		raw, err := payload.Encode(value)
		if err != nil {
			continue // JSON cannot hold it, so it could not be stored either
		}
		out[name] = json.RawMessage(x.job.Redact.JSON(raw))
	}
	return out
}
