package memory

import (
	"context"
	"encoding/json"
	"math/big"
	"path"
	"slices"
	"strings"
	"time"

	"tandem/fault"
	"tandem/payload"
	"tandem/store"
	"tandem/text"
)

// KeyValueConfig are the configurations of a key-value store.
type KeyValueConfig struct {
	Operation string `json:"operation" enum:"get|delete|exists|set|keys|increment|clear" legacy:"load_context|remember" doc:"What is done; without it the input says so." zh:"执行的操作；省略时由输入决定。"`
	Common
	// DefaultTTL is in seconds; zero: for ever.
	DefaultTTL int64  `json:"default_ttl" range:"0.." doc:"After how many seconds a value is forgotten; 0 for never." zh:"值的有效秒数；0 表示永久。"`
	KeyPrefix  string `json:"key_prefix" doc:"What stands before every key." zh:"每个键的前缀。"`
	MaxKeys    int    `json:"max_keys" range:"1..100000" doc:"The most keys that are kept." zh:"最多保留的键数。"`
}

// Defaults sets what is not configured.
func (c *KeyValueConfig) Defaults() { c.Common, c.MaxKeys = common(), 1000 }

// KeyValueInput is what a key-value store is asked.
type KeyValueInput struct {
	Ask
	Key     string           `json:"key,omitempty" doc:"The key." zh:"键。"`
	Value   json.RawMessage  `json:"value,omitempty" doc:"The value to keep." zh:"要保存的值。"`
	By      *json.Number     `json:"by,omitempty" doc:"How much increment adds; 1 without it." zh:"increment 的增量；省略时为 1。"`
	Options *KeyValueOptions `json:"options,omitempty" doc:"ttl, if_absent, if_version, or the pattern of keys." zh:"选项：ttl、if_absent、if_version 或键的模式 pattern。"`
}

// KeyValueOptions are what an operation on a key can be told.
type KeyValueOptions struct {
	// TTL is in seconds; zero: for ever.
	TTL      *int64 `json:"ttl,omitempty"`
	IfAbsent bool   `json:"if_absent,omitempty"`
	// IfVersion is the version that the value must have; zero: there must be none.
	IfVersion *int64 `json:"if_version,omitempty"`
	// Pattern has * for any text and ? for any character.
	Pattern string `json:"pattern,omitempty"`
}

// UnmarshalJSON implements [json.Unmarshaler]. An option that there is none of is refused: anyone who misspells one believes that it holds.
func (o *KeyValueOptions) UnmarshalJSON(raw []byte) error {
	known := []string{"ttl", "if_absent", "if_version", "pattern"}
	for _, m := range payload.Members(raw) {
		if slices.ContainsFunc(known, func(name string) bool { return strings.EqualFold(name, m.Key) }) {
			continue
		}
		hint := text.Of("; there are %s", strings.Join(known, ", "))
		if near := fault.Nearest(m.Key, known); near != "" {
			hint = text.Of("; did you mean %q?", near)
		}
		return fault.Newf(fault.InvalidInput, "options: there is no option %q%s", m.Key, hint).With("path", "options."+m.Key)
	}
	type plain KeyValueOptions
	return payload.Read(raw, (*plain)(o))
}

// KeyValueOutput is what a key-value store answers.
type KeyValueOutput struct {
	Answer
	Value  json.RawMessage `json:"value" doc:"The value; null if there is none." zh:"值；没有时为 null。"`
	Exists bool            `json:"exists" doc:"Whether there is one." zh:"是否存在。"`
	Keys   []string        `json:"keys" doc:"The keys, for keys." zh:"keys 操作列出的键。"`
	// Version counts the changes of the value; zero: there is none.
	Version int64 `json:"version" doc:"How often the value was changed." zh:"值被更改的次数。"`
}

// sortKey is the sort of the records of key-value stores.
const sortKey = "key"

// keyValue is the body of a record, and what a repetition of a change is told.
type keyValue struct {
	Value   json.RawMessage `json:"value"`
	Version int64           `json:"version,omitempty"`
	Exists  bool            `json:"exists,omitempty"`
}

type keyValues struct {
	*session
	cfg KeyValueConfig
}

func (s *Store) openKeyValues(call Call, c KeyValueConfig) *keyValues {
	return &keyValues{s.open(call, "KEY_VALUE_STORE", c.Common, ""), c}
}

func (c KeyValueConfig) open(s *Store, call Call) (keeper, error) {
	return s.openKeyValues(call, c), nil
}

// KeyValues keeps values by key.
func (s *Store) KeyValues(ctx context.Context, c Call, cfg KeyValueConfig, in KeyValueInput) (out KeyValueOutput, err error) {
	op := operation(cfg.Operation, in.Operation, "")
	k := s.openKeyValues(c, cfg)
	out.Keys, out.Value = []string{}, json.RawMessage("null")
	if done, err := attached(ctx, k, op, in.Ask, &out.Answer); done || err != nil {
		return out, err
	}
	var o KeyValueOptions
	if in.Options != nil {
		o = *in.Options
	}
	if o.TTL != nil && *o.TTL < 0 {
		return out, fault.New(fault.InvalidInput, `"options.ttl" must not be negative`).With("path", "options.ttl")
	}
	switch op {
	case "get", "exists", "delete", "set", "increment":
		if in.Key == "" {
			return out, required(op, "key")
		}
		if len(cfg.KeyPrefix)+len(in.Key) > maxKey {
			return out, fault.Newf(fault.TooLarge, `"key" has %d bytes; up to %d are possible`, len(in.Key), maxKey-len(cfg.KeyPrefix)).With("path", "key")
		}
	}
	key := cfg.KeyPrefix + in.Key
	var kept keyValue
	switch op {
	case "get", "exists":
		r, found, err := k.getRecord(ctx, sortKey, key, &kept)
		if err != nil || !found {
			return out, err
		}
		out.Exists, out.Version = true, r.Version
		if op == "get" {
			out.Value, out.Context = kept.Value, k.line(in.Key, kept)
		}
		return out, nil
	case "delete":
		n, err := k.remove(ctx, sortKey, key)
		out.Exists = n > 0
		return out, err
	case "set":
		if len(in.Value) == 0 {
			return out, required(op, "value")
		}
		kept, err = k.set(ctx, key, o, false, func(keyValue, bool) (json.RawMessage, error) { return in.Value, nil })
	case "increment":
		by := json.Number("1")
		if in.By != nil {
			by = *in.By
		}
		kept, err = k.set(ctx, key, o, true, func(old keyValue, found bool) (json.RawMessage, error) { return sum(old, found, by) })
	case "keys":
		if out.Keys, err = k.keys(ctx, o.Pattern); err == nil {
			out.Context = cut(strings.Join(out.Keys, "\n"), cfg.MaxContextChars)
		}
		return out, err
	case "clear":
		_, err := k.wipe(ctx)
		return out, err
	default:
		return out, unknown(op, "get", "set", "delete", "exists", "keys", "increment", "clear", LoadContext, Remember)
	}
	if err == nil {
		out.Value, out.Version, out.Exists, out.Stored, out.Context = kept.Value, kept.Version, true, yes(true), k.line(in.Key, kept)
	}
	return out, err
}

// line tells one value.
func (k *keyValues) line(key string, v keyValue) string {
	return cut(key+" = "+string(v.Value), k.cfg.MaxContextChars)
}

// maxKey bounds a key with its prefix, in bytes.
const maxKey = 1024

// sum adds without losing digits.
func sum(old keyValue, found bool, by json.Number) (json.RawMessage, error) {
	text := "0"
	if found {
		text = strings.TrimSpace(string(old.Value))
	}
	if len(text) > 100 || len(by) > 100 || tooBig(text, by.String()) {
		return nil, fault.New(fault.InvalidInput, "the number is too large to be counted with").With("path", "by")
	}
	a, ok := new(big.Rat).SetString(text)
	b, fine := new(big.Rat).SetString(by.String())
	if !ok {
		return nil, fault.New(fault.InvalidInput, "the value is not a number, so nothing can be added to it").With("path", "key")
	}
	if !fine {
		return nil, fault.Newf(fault.InvalidInput, `"by" must be a number, not %q`, by).With("path", "by")
	}
	c := new(big.Rat).Add(a, b)
	if c.IsInt() {
		return json.RawMessage(c.Num().String()), nil
	}
	places, exact := c.FloatPrec()
	if !exact {
		places = 20
	}
	return json.RawMessage(c.FloatString(places)), nil
}

// tooBig says that an exponent would make a number of unreasonable length.
func tooBig(texts ...string) bool {
	for _, text := range texts {
		if i := strings.IndexAny(text, "eE"); i >= 0 && len(strings.TrimLeft(text[i+1:], "+-0")) > 3 {
			return true
		}
	}
	return false
}

// set changes one value, if the conditions hold. With keep it lives on as long as it did.
func (k *keyValues) set(ctx context.Context, key string, o KeyValueOptions, keep bool,
	next func(old keyValue, found bool) (json.RawMessage, error)) (keyValue, error) {
	receipt, err := k.change(ctx, func(ctx context.Context, version int64) (d draft, err error) {
		var old keyValue
		r, found, err := k.getRecord(ctx, sortKey, key, &old)
		if err != nil {
			return d, err
		}
		plain := strings.TrimPrefix(key, k.cfg.KeyPrefix)
		switch {
		case o.IfAbsent && found:
			return d, fault.Newf(fault.Conflict, "the key %q has a value already", plain).With("version", r.Version)
		case o.IfVersion != nil && *o.IfVersion != r.Version:
			return d, fault.Newf(fault.Conflict, "the value of %q has the version %d, not %d; read it again", plain, r.Version, *o.IfVersion).With("version", r.Version)
		}
		if !found {
			// An expired value is gone: its version does not go on.
			d.Delete = []store.MemoryKey{{Sort: sortKey, ID: key}}
			if err := k.room(ctx, plain); err != nil {
				return d, err
			}
		}
		value, err := next(old, found)
		if err != nil {
			return d, err
		}
		raw, err := body("value", keyValue{Value: value})
		if err != nil {
			return d, err
		}
		put := store.MemoryRecord{Sort: sortKey, ID: key, Body: raw, At: k.millis(), Expires: r.Expires}
		switch {
		case o.TTL != nil:
			put.Expires = k.after(*o.TTL)
		case !found || !keep:
			put.Expires = k.after(k.cfg.DefaultTTL)
		}
		d.Put = []store.MemoryRecord{put}
		d.Result, err = json.Marshal(keyValue{Value: value, Version: r.Version + 1, Exists: found})
		return d, err
	})
	if err != nil {
		return keyValue{}, err
	}
	var told keyValue
	return told, json.Unmarshal(receipt.Result, &told)
}

// room refuses a new key when there are as many as there may be.
func (k *keyValues) room(ctx context.Context, key string) error {
	n, err := k.count(ctx, sortKey)
	if err == nil && n >= k.cfg.MaxKeys {
		err = fault.Newf(fault.Conflict, "there is no room for %q: the memory has %d keys already; delete some or raise max_keys", key, n).With("limit", k.cfg.MaxKeys)
	}
	return err
}

// after is when something expires that lives so many seconds; zero: never.
func (x *session) after(seconds int64) int64 {
	if seconds <= 0 {
		return 0
	}
	return x.Now.Add(time.Duration(min(seconds, 100*365*24*3600)) * time.Second).UnixMilli()
}

// keys are those that match a pattern, without the prefix, in order.
func (k *keyValues) keys(ctx context.Context, pattern string) ([]string, error) {
	if _, err := path.Match(globbed(pattern), ""); err != nil {
		return nil, fault.Newf(fault.InvalidInput, "the pattern %q cannot be read", pattern).With("path", "options.pattern").WithCause(err)
	}
	records, err := k.list(ctx, store.MemoryQuery{Sort: sortKey})
	if err != nil {
		return nil, err
	}
	keys := []string{}
	for _, r := range records {
		key, ours := strings.CutPrefix(r.ID, k.cfg.KeyPrefix)
		if !ours {
			continue
		}
		if match, err := path.Match(globbed(pattern), strings.ReplaceAll(key, "/", "\x00")); pattern == "" || err == nil && match {
			keys = append(keys, key)
		}
	}
	return sorted(keys), nil
}

// globbed makes a pattern in which a slash is a character like any other.
func globbed(pattern string) string {
	return strings.NewReplacer("/", "\x00", `\`, `\\`, "[", `\[`).Replace(pattern)
}

// wipe removes the keys of the prefix, which without one are all.
func (k *keyValues) wipe(ctx context.Context) (int, error) {
	if k.cfg.KeyPrefix == "" {
		return 0, k.clear(ctx)
	}
	keys, err := k.keys(ctx, "")
	if err != nil {
		return 0, err
	}
	for i := range keys {
		keys[i] = k.cfg.KeyPrefix + keys[i]
	}
	return k.remove(ctx, sortKey, keys...)
}

func (k *keyValues) context(ctx context.Context, _ string) (Context, error) {
	var told Context
	keys, err := k.list(ctx, store.MemoryQuery{Sort: sortKey, Order: store.LatestFirst, Limit: 1000})
	if err != nil {
		return told, err
	}
	w := writing{room: k.cfg.MaxContextChars}
	for _, r := range keys {
		key, ours := strings.CutPrefix(r.ID, k.cfg.KeyPrefix)
		var v keyValue
		if err := read(r, &v); err != nil {
			return told, err
		}
		if ours && w.line("%s = %s", key, cut(payload.JSON(v.Value), 1000)) {
			told.Items++
		}
	}
	told.Text = w.String()
	return told, nil
}

// remember takes nothing in: nobody has said which key an exchange belongs to.
func (k *keyValues) remember(context.Context, Exchange) (bool, error) { return false, nil }
