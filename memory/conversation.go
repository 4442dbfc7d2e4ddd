package memory

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/store"
	"tandem/text"
)

// Message is one message of a conversation.
type Message struct {
	Role     string          `json:"role"`
	Content  string          `json:"content"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Timestamp is when it was taken in, in Unix milliseconds.
	Timestamp int64 `json:"timestamp,omitempty"`
}

// UnmarshalJSON reads a message; a text alone is what a user said.
func (m *Message) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		m.Role = "user"
		return json.Unmarshal(raw, &m.Content)
	}
	type plain Message
	return json.Unmarshal(raw, (*plain)(m))
}

// check refuses what is not a message, and gives it its role.
func (m *Message) check(field string) error {
	if m.Role = strings.ToLower(m.Role); m.Role == "" {
		m.Role = "user"
	}
	if !slices.Contains([]string{"user", "assistant", "system"}, m.Role) {
		return fault.Newf(fault.InvalidInput, `there is no role %q; use "user", "assistant" or "system"`, m.Role).With("path", field)
	}
	if strings.TrimSpace(m.Content) == "" {
		return fault.Newf(fault.InvalidInput, "%q has no content", field).With("path", field)
	}
	return nil
}

// Sorts of records of conversations.
const (
	sortMessage = "message"
	sortSummary = "summary"
)

// summary is what older messages came to.
type summary struct {
	Text string `json:"text"`
	// Covered is how many messages are in it.
	Covered int   `json:"covered"`
	Updated int64 `json:"updated"`
}

// BufferConfig are the configurations of a conversation buffer.
type BufferConfig struct {
	Operation string `json:"operation" enum:"add|get|clear" legacy:"load_context|remember" doc:"What is done; without it the input says so." zh:"执行的操作；省略时由输入决定。"`
	Common
	MaxMessages    int  `json:"max_messages" range:"1..1000" doc:"How many messages are kept." zh:"保留多少条消息。"`
	AutoSummarize  bool `json:"auto_summarize" doc:"Whether older messages go into a summary." zh:"是否将较早的消息归入摘要。"`
	SummarizeCount int  `json:"summarize_count" range:"1.." doc:"How many messages are summarised at once." zh:"一次归入摘要的消息数。"`
}

// Defaults sets what is not configured.
func (c *BufferConfig) Defaults() {
	c.Common, c.MaxMessages, c.AutoSummarize, c.SummarizeCount = common(), 50, true, 10
}

// BufferInput is what a conversation buffer is asked.
type BufferInput struct {
	Ask
	Message     string          `json:"message,omitempty" doc:"The message to add." zh:"要添加的消息。"`
	Role        string          `json:"role,omitempty" doc:"Who says it: user, assistant or system." zh:"消息的角色：user、assistant 或 system。"`
	Metadata    json.RawMessage `json:"metadata,omitempty" doc:"What is kept with the message." zh:"随消息保存的内容。"`
	RecentCount int             `json:"recent_count,omitempty" doc:"How many messages are returned." zh:"返回的消息数。"`
}

// BufferOutput is what a conversation buffer answers.
type BufferOutput struct {
	Answer
	Messages      []Message `json:"messages" doc:"The messages, the oldest first." zh:"消息，最早的在前。"`
	TotalMessages int       `json:"total_messages" doc:"How many are kept." zh:"保存的消息数。"`
	// BufferFull says that the buffer was within five messages of being full.
	BufferFull bool   `json:"buffer_full" doc:"Whether the buffer is almost full." zh:"缓冲是否将满。"`
	Summary    string `json:"summary" doc:"What is known of older messages." zh:"较早消息的摘要。"`
}

type buffer struct {
	*session
	cfg BufferConfig
}

func (s *Store) openBuffer(call Call, c BufferConfig) *buffer {
	return &buffer{s.open(call, "CONVERSATION_BUFFER", c.Common, ""), c}
}

func (c BufferConfig) open(s *Store, call Call) (keeper, error) { return s.openBuffer(call, c), nil }

// bufferNear is within how many messages of being full the oldest are folded.
const bufferNear = 5

// full is from how many messages on the oldest are folded.
func (c *BufferConfig) full() int {
	if c.MaxMessages > bufferNear {
		return c.MaxMessages - bufferNear
	}
	return c.MaxMessages
}

// stay is how many of the last messages are never folded: one, or a few where all the others would go each time.
func (c *BufferConfig) stay() int {
	if c.SummarizeCount < c.full() {
		return 1
	}
	return max(1, min(bufferNear, c.MaxMessages/2))
}

// Buffer keeps the last messages of a conversation; older ones are folded into a summary.
func (s *Store) Buffer(ctx context.Context, c Call, cfg BufferConfig, in BufferInput) (out BufferOutput, err error) {
	op := operation(cfg.Operation, in.Operation, "")
	b := s.openBuffer(c, cfg)
	if done, err := attached(ctx, b, op, in.Ask, &out.Answer); err != nil {
		return out, err
	} else if done {
		return out, b.tellBuffer(ctx, &out, 0, "")
	}
	switch op {
	case "add":
		if in.Message == "" {
			return out, required(op, "message")
		}
		full, err := b.addMessages(ctx, Message{Role: in.Role, Content: in.Message, Metadata: in.Metadata})
		if err != nil {
			return out, err
		}
		out.Stored = yes(true)
		if err := b.tellBuffer(ctx, &out, 0, ""); err != nil {
			return out, err
		}
		out.BufferFull = out.BufferFull || full
		return out, nil
	case "get":
		if in.RecentCount < 0 {
			return out, fault.New(fault.InvalidInput, `"recent_count" must not be negative`).With("path", "recent_count")
		}
		return out, b.tellBuffer(ctx, &out, in.RecentCount, strings.ToLower(in.Role))
	case "clear":
		if err := b.clear(ctx); err != nil {
			return out, err
		}
		return out, b.tellBuffer(ctx, &out, 0, "")
	}
	return out, unknown(op, "add", "get", "clear", LoadContext, Remember)
}

// conversation is the messages that are kept, as they came, and the summary of those that are not.
func (x *session) conversation(ctx context.Context) ([]Message, []store.MemoryRecord, summary, error) {
	var sum summary
	if _, _, err := x.getRecord(ctx, sortSummary, sortSummary, &sum); err != nil {
		return nil, nil, sum, err
	}
	records, err := x.list(ctx, store.MemoryQuery{Sort: sortMessage})
	if err != nil {
		return nil, nil, sum, err
	}
	messages, err := readAll[Message](records)
	return messages, records, sum, err
}

// tellBuffer fills the answer: of a role, or the last few.
func (b *buffer) tellBuffer(ctx context.Context, out *BufferOutput, recent int, role string) error {
	messages, _, sum, err := b.conversation(ctx)
	if err != nil {
		return err
	}
	out.TotalMessages, out.Summary, out.Messages = len(messages), sum.Text, []Message{}
	out.BufferFull = len(messages) >= b.cfg.full()
	if out.Context == "" {
		out.Context = b.tellConversation(sum.Text, messages[max(0, len(messages)-recentMessages):], b.cfg.MaxContextChars).Text
	}
	for _, m := range messages {
		if role == "" || m.Role == role {
			out.Messages = append(out.Messages, m)
		}
	}
	if recent > 0 && len(out.Messages) > recent {
		out.Messages = out.Messages[len(out.Messages)-recent:]
	}
	return nil
}

// messageRecords are records of new messages.
func (x *session) messageRecords(version int64, messages []Message) ([]store.MemoryRecord, error) {
	var list []store.MemoryRecord
	for i := range messages {
		m := messages[i]
		if err := m.check("message"); err != nil {
			return nil, err
		}
		m.Timestamp = x.millis()
		raw, err := body("message", m)
		if err != nil {
			return nil, err
		}
		list = append(list, store.MemoryRecord{Sort: sortMessage, ID: x.recordID(version, i), Body: raw, At: m.Timestamp})
	}
	return list, nil
}

// addMessages takes messages in and folds the oldest when the buffer is nearly full.
func (b *buffer) addMessages(ctx context.Context, messages ...Message) (full bool, err error) {
	fold := b.folding()
	_, err = b.change(ctx, func(ctx context.Context, version int64) (draft, error) {
		d := draft{}
		full = false
		if d.Put, err = b.messageRecords(version, messages); err != nil {
			return d, err
		}
		kept, records, sum, err := b.conversation(ctx)
		if err != nil {
			return d, err
		}
		total := len(kept) + len(d.Put)
		if total < b.cfg.full() {
			return d, nil
		}
		full = true
		n := min(b.cfg.SummarizeCount, total-b.cfg.stay(), len(kept))
		n = max(n, min(total-b.cfg.MaxMessages, len(kept)))
		if n <= 0 {
			return d, nil
		}
		if b.cfg.AutoSummarize {
			text, err := fold(ctx, sum.Text, kept[:n], maxSummary)
			if err != nil {
				b.warn("the oldest messages were not summarised", err)
				if total < b.cfg.MaxMessages {
					return d, nil // there is room yet; the next message tries again
				}
				text = extract(sum.Text, kept[:n], maxSummary)
			}
			raw, err := body("summary", summary{text, sum.Covered + n, b.millis()})
			if err != nil {
				return d, err
			}
			d.Put = append(d.Put, store.MemoryRecord{Sort: sortSummary, ID: sortSummary, Body: raw})
		}
		for _, r := range records[:n] {
			d.Delete = append(d.Delete, store.MemoryKey{Sort: sortMessage, ID: r.ID})
		}
		return d, nil
	})
	return full, err
}

// maxSummary bounds the summary of a buffer, in characters.
const maxSummary = 2000

// folding makes a function that folds messages into a summary, and asks a model once for the same ones.
func (x *session) folding() func(ctx context.Context, before string, messages []Message, limit int) (string, error) {
	asked := map[string]string{}
	return func(ctx context.Context, before string, messages []Message, limit int) (string, error) {
		if x.profile == "" || x.Model == nil {
			return extract(before, messages, limit), nil
		}
		key, err := json.Marshal([]any{before, messages})
		if err != nil {
			return "", err
		}
		if text, ok := asked[string(key)]; ok {
			return text, nil
		}
		text, err := x.Model(ctx, x.profile, summaryPrompt(before, messages, limit))
		if err != nil {
			return "", err
		}
		if text = strings.TrimSpace(text); text == "" {
			return "", fault.New(fault.OutputInvalid, "the model returned no summary")
		}
		asked[string(key)] = cut(text, limit)
		return asked[string(key)], nil
	}
}

// recentMessages is how many messages a context has at most.
const recentMessages = 20

func (b *buffer) context(ctx context.Context, _ string) (Context, error) {
	messages, _, sum, err := b.conversation(ctx)
	if err != nil {
		return Context{}, err
	}
	return b.tellConversation(sum.Text, messages[max(0, len(messages)-recentMessages):], b.cfg.MaxContextChars), nil
}

// tellConversation writes a summary and messages within a bound; the oldest messages go first when there is no room.
func (x *session) tellConversation(sum string, messages []Message, room int) Context {
	var told Context
	w := writing{room: room}
	if sum != "" {
		head := x.in(text.Of("Summary of the conversation so far: "))
		if left := room - len([]rune(head)); left > 0 && w.line("%s%s", head, cut(sum, left)) {
			told.Items++
		}
	}
	lines := make([]string, len(messages))
	for i, m := range messages {
		lines[i] = m.Role + ": " + m.Content
	}
	first, left := len(lines), w.room
	for first > 0 && left > len([]rune(lines[first-1])) {
		left -= len([]rune(lines[first-1])) + 1
		first--
	}
	if first == len(lines) && len(lines) > 0 && w.room > 1 { // the last one alone is too long
		first--
		lines[first] = cut(lines[first], w.room-1)
	}
	for _, line := range lines[first:] {
		if w.line("%s", line) {
			told.Items++
		}
	}
	told.Text = w.String()
	return told
}

func (b *buffer) remember(ctx context.Context, e Exchange) (bool, error) {
	_, err := b.addMessages(ctx, e.messages()...)
	return err == nil, err
}

// messages are the two sides of an exchange, without a side that said nothing.
func (e Exchange) messages() []Message {
	var list []Message
	for _, m := range []Message{{Role: "user", Content: e.User}, {Role: "assistant", Content: e.Assistant}} {
		if strings.TrimSpace(m.Content) != "" {
			list = append(list, m)
		}
	}
	return list
}

// SummaryConfig are the configurations of a running summary.
type SummaryConfig struct {
	Operation string `json:"operation" enum:"update|get|clear" legacy:"load_context|remember" doc:"What is done; without it the input says so." zh:"执行的操作；省略时由输入决定。"`
	Common
	MaxSummaryChars int `json:"max_summary_chars" range:"1.." doc:"The most characters of the summary." zh:"摘要的最多字符数。"`
	UpdateEvery     int `json:"update_every" range:"1.." doc:"After how many messages the summary is written anew." zh:"每多少条消息更新一次摘要。"`
}

// Defaults sets what is not configured.
func (c *SummaryConfig) Defaults() { c.Common, c.MaxSummaryChars, c.UpdateEvery = common(), 2000, 5 }

// SummaryInput is what a running summary is asked.
type SummaryInput struct {
	Ask
	Messages []Message `json:"messages,omitempty" doc:"The messages to take in." zh:"要纳入的消息。"`
}

// SummaryOutput is what a running summary answers.
type SummaryOutput struct {
	Answer
	Summary string `json:"summary" doc:"The summary." zh:"摘要。"`
	// CoveredMessages is how many messages are in the summary; PendingMessages how many are not yet.
	CoveredMessages int   `json:"covered_messages" doc:"How many messages are in it." zh:"已纳入的消息数。"`
	PendingMessages int   `json:"pending_messages" doc:"How many are not in it yet." zh:"尚未纳入的消息数。"`
	UpdatedAt       int64 `json:"updated_at" doc:"When it was written, in Unix milliseconds." zh:"更新时间（Unix 毫秒）。"`
}

type running struct {
	*session
	cfg SummaryConfig
}

func (s *Store) openRunning(call Call, c SummaryConfig) *running {
	return &running{s.open(call, "CONVERSATION_SUMMARY", c.Common, ""), c}
}

func (c SummaryConfig) open(s *Store, call Call) (keeper, error) { return s.openRunning(call, c), nil }

// Summary keeps one running summary; messages that it does not cover yet are kept until it does.
func (s *Store) Summary(ctx context.Context, c Call, cfg SummaryConfig, in SummaryInput) (out SummaryOutput, err error) {
	op := operation(cfg.Operation, in.Operation, "")
	r := s.openRunning(c, cfg)
	done, err := attached(ctx, r, op, in.Ask, &out.Answer)
	if err != nil {
		return out, err
	}
	switch {
	case done:
	case op == "update":
		if len(in.Messages) == 0 {
			return out, required(op, "messages")
		}
		if err := r.update(ctx, in.Messages); err != nil {
			return out, err
		}
		out.Stored = yes(true)
	case op == "get":
	case op == "clear":
		if err := r.clear(ctx); err != nil {
			return out, err
		}
	default:
		return out, unknown(op, "update", "get", "clear", LoadContext, Remember)
	}
	pending, _, sum, err := r.conversation(ctx)
	out.Summary, out.CoveredMessages, out.PendingMessages, out.UpdatedAt = sum.Text, sum.Covered, len(pending), sum.Updated
	if out.Context == "" {
		out.Context = r.tellConversation(sum.Text, pending, r.cfg.MaxContextChars).Text
	}
	return out, err
}

// maxPending is how many messages wait for a model that does not answer before rules take its place.
const maxPending = 200

func (r *running) update(ctx context.Context, messages []Message) error {
	fold := r.folding()
	_, err := r.change(ctx, func(ctx context.Context, version int64) (d draft, err error) {
		if d.Put, err = r.messageRecords(version, messages); err != nil {
			return d, err
		}
		pending, records, sum, err := r.conversation(ctx)
		if err != nil {
			return d, err
		}
		fresh, err := readAll[Message](d.Put)
		if err != nil {
			return d, err
		}
		all := append(pending, fresh...)
		if len(all) < r.cfg.UpdateEvery {
			return d, nil
		}
		text, err := fold(ctx, sum.Text, all, r.cfg.MaxSummaryChars)
		if err != nil {
			r.warn("the summary was not updated; the old one stays", err)
			if len(all) < maxPending {
				return d, nil
			}
			text = extract(sum.Text, all, r.cfg.MaxSummaryChars)
		}
		raw, err := body("summary", summary{text, sum.Covered + len(all), r.millis()})
		if err != nil {
			return d, err
		}
		d.Put = []store.MemoryRecord{{Sort: sortSummary, ID: sortSummary, Body: raw}}
		for _, p := range records {
			d.Delete = append(d.Delete, store.MemoryKey{Sort: sortMessage, ID: p.ID})
		}
		return d, nil
	})
	return err
}

func (r *running) context(ctx context.Context, _ string) (Context, error) {
	pending, _, sum, err := r.conversation(ctx)
	if err != nil {
		return Context{}, err
	}
	return r.tellConversation(sum.Text, pending, r.cfg.MaxContextChars), nil
}

func (r *running) remember(ctx context.Context, e Exchange) (bool, error) {
	return true, r.update(ctx, e.messages())
}
