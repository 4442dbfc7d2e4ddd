package local

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"tandem/credential"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/payload"
)

// What a run sends is shown to those who are asked whether it was done, and to readers of the activation. It is derived from the journal:
// no credential is opened, so it has no secrets of those; fields with secret names are removed.

// maxSent is how large it may be as a whole, maxSentText how long a text in it is shown.
const (
	maxSent     = 24 << 10
	maxSentText = 4 << 10
)

// Sent implements host.Revision.
func (r revision) Sent(run engine.RunNode, values *host.Inputs, data host.Data) (json.RawMessage, error) {
	if run.Node < 0 {
		return shown(host.ShownInput(run.Activation, values.Value(run.Input)))
	}
	sent, err := r.Revision.Sent(newJob(run, values, data))
	if err != nil {
		return nil, err
	}
	return shown(sent)
}

// shown makes a value fit to be shown: without secrets, long texts cut, and bounded.
func shown(value json.RawMessage) (json.RawMessage, error) {
	if len(value) == 0 {
		return nil, nil
	}
	decoded, err := payload.Decode(value)
	if err != nil {
		return nil, fault.Newf(fault.Unreadable, "it cannot be shown: %w", err)
	}
	raw, err := payload.Encode(hide(decoded))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxSent || payload.Check(raw, payload.Limits{MaxDepth: payload.MaxDepth / 2}) != nil {
		text := string(raw[:min(len(raw), maxSentText)])
		return json.Marshal(map[string]any{"$omitted": true, "size": len(raw), "begins": strings.ToValidUTF8(text, "")})
	}
	return raw, nil
}

// hide takes out what is secret by its name, and cuts long texts.
func hide(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v { // order does not matter: each is handled by itself
			if _, isText := inner.(string); isText && secretByName(name) {
				v[name] = credential.Mark
				continue
			}
			v[name] = hide(inner)
		}
	case []any:
		for n := range v {
			v[n] = hide(v[n])
		}
	case string:
		if v = hideInAddress(v); len(v) > maxSentText {
			return strings.ToValidUTF8(v[:maxSentText], "") + "…"
		}
		return v
	}
	return value
}

// secretByName says that what goes by a name is a secret. The id of a credential is none.
func secretByName(name string) bool {
	return name != "credential_id" && !strings.HasSuffix(name, "_credential_id") && credential.SensitiveHeader(name)
}

// hideInAddress takes passwords and secret parameters out of a text that is an address.
func hideInAddress(text string) string {
	if !strings.Contains(text, "://") || len(text) > maxSentText {
		return text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return text
	}
	changed := false
	if u.User != nil {
		u.User, changed = url.User(credential.Mark), true
	}
	pairs := strings.Split(u.RawQuery, "&")
	for n, pair := range pairs {
		name, _, valued := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(name)
		if valued && (err != nil || credential.SensitiveHeader(plain) || slices.Contains([]string{"key", "sig"}, strings.ToLower(plain))) {
			pairs[n], changed = name+"="+credential.Mark, true
		}
	}
	if !changed {
		return text // as it was written
	}
	u.RawQuery = strings.Join(pairs, "&")
	return u.String()
}

// noteSent records with a row what was sent by attempts of which nobody knows how they ended: it becomes part of their details.
func (o *owner) noteSent(row *host.Row, commands []engine.Command) {
	for _, c := range commands {
		var id engine.ActivationID
		switch c := c.(type) {
		case engine.Ask:
			if c.Purpose == engine.PurposeOutcomeUnknown {
				id = c.Activation
			}
		case engine.EndNode:
			if c.Error != nil && c.Error.Code == fault.OutcomeUnknown {
				id = c.Activation
			}
		}
		if id == "" {
			continue
		}
		if sent := o.fold.Sent(id); len(sent) > 0 {
			o.addDetail(row, id, "sent", sent)
		}
	}
}

// addDetail adds a field to the details of an activation: those that the row records, else those it had.
func (o *owner) addDetail(row *host.Row, id engine.ActivationID, name string, value json.RawMessage) {
	at := slices.IndexFunc(row.Told, func(t host.Told) bool { return t.What == host.ToldDetail && t.Activation == id })
	var before json.RawMessage
	if a := o.fold.View().Open[id]; at >= 0 {
		before = row.Told[at].Detail
	} else if a != nil {
		before = a.Detail
	}
	details := map[string]json.RawMessage{}
	if len(before) > 0 && json.Unmarshal(before, &details) != nil {
		details = map[string]json.RawMessage{}
	}
	details[name] = value
	raw, err := json.Marshal(details)
	if err != nil { // all of it has been JSON before
		o.host.opts.Log.Warn("details of a node left out", "execution", o.ref.Execution, "activation", id, "error", err)
		return
	}
	if at >= 0 {
		row.Told[at].Detail = raw
		return
	}
	row.Told = append(row.Told, host.Told{What: host.ToldDetail, Activation: id, Detail: raw})
}
