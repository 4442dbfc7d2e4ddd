package anthropic

import (
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"tandem/fault"
	"tandem/llm"
)

// answer is an answer that is being put together. One goroutine owns it.
type answer struct {
	sink func(llm.Delta)
	// thinking is the last block of thoughts that the sink was given.
	thinking *block

	blocks    []*block
	id, model string
	stop      string
	refusal   sdk.RefusalStopDetails
	usage     usage
	// done says that the service has said that the answer is complete.
	done bool
}

// block is one part of an answer, in the service's order.
type block struct {
	kind string // text, thinking, redacted_thinking, tool_use; anything else is not ours
	text strings.Builder
	// signature and data belong to thoughts.
	signature, data string
	// raw is a thought as it was sent, when it came in one piece.
	raw json.RawMessage
	// call and number belong to tool_use: number counts the calls.
	call   llm.ToolCall
	number int
	whole  string // the arguments that came with the beginning of the block
}

// usage is what the service says was used.
type usage struct {
	told                                   bool
	input, output, read, written, thinking int64
}

// betweenThoughts keeps the thoughts of several blocks apart for the people who read them.
const betweenThoughts = "\n\n"

// The kinds of blocks.
const (
	textBlock     = "text"
	thinkingBlock = "thinking"
	redactedBlock = "redacted_thinking"
	toolBlock     = "tool_use"
)

// takeBlock adds a block that came in one piece.
func (a *answer) takeBlock(from sdk.ContentBlockUnion) {
	b := &block{kind: from.Type}
	switch from.Type {
	case textBlock:
		b.text.WriteString(from.Text)
	case thinkingBlock, redactedBlock:
		b.text.WriteString(from.Thinking)
		b.raw = json.RawMessage(from.RawJSON())
	case toolBlock:
		b.call = llm.ToolCall{ID: from.ID, Name: from.Name}
		b.whole = string(from.AsToolUse().Input)
	}
	a.blocks = append(a.blocks, b)
}

// event adds an event of a stream and tells the sink.
func (a *answer) event(e sdk.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		a.id, a.model = e.Message.ID, string(e.Message.Model)
		u := e.Message.Usage
		a.usage = usage{told: e.Message.JSON.Usage.Valid(), input: u.InputTokens, output: u.OutputTokens, read: u.CacheReadInputTokens,
			written: u.CacheCreationInputTokens, thinking: u.OutputTokensDetails.ThinkingTokens}
	case "content_block_start":
		if e.Index != int64(len(a.blocks)) {
			return disordered()
		}
		a.begin(e.ContentBlock)
	case "content_block_delta":
		if e.Index < 0 || e.Index >= int64(len(a.blocks)) {
			return disordered()
		}
		a.piece(a.blocks[e.Index], e.Delta)
	case "content_block_stop":
		if e.Index < 0 || e.Index >= int64(len(a.blocks)) {
			return disordered()
		}
		a.close(a.blocks[e.Index])
	case "message_delta":
		if e.Delta.StopReason != "" {
			a.stop, a.refusal = string(e.Delta.StopReason), e.Delta.StopDetails
		}
		a.usage.overlay(e.Usage)
	case "message_stop":
		a.done = true
	}
	return nil // events that are not known yet say nothing that is wanted
}

func disordered() error {
	return fault.New(fault.RemoteError, "the anthropic service sent the parts of its answer out of order")
}

func (a *answer) begin(from sdk.ContentBlockStartEventContentBlockUnion) {
	b := &block{kind: from.Type}
	a.blocks = append(a.blocks, b)
	switch from.Type {
	case textBlock:
		b.text.WriteString(from.Text)
		a.sendDelta(llm.Delta{Text: from.Text})
	case thinkingBlock:
		b.text.WriteString(from.Thinking)
		b.signature = from.Signature
		a.think(b, from.Thinking)
	case redactedBlock:
		b.data = from.Data
	case toolBlock:
		b.call = llm.ToolCall{ID: from.ID, Name: from.Name}
		b.number = a.calls() - 1
		if raw := from.JSON.Input.Raw(); raw != "null" {
			b.whole = raw
		}
		a.sendDelta(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: b.number, ID: from.ID, Name: from.Name}})
	}
}

func (a *answer) piece(b *block, d sdk.MessageStreamEventUnionDelta) {
	switch d.Type {
	case "text_delta":
		b.text.WriteString(d.Text)
		a.sendDelta(llm.Delta{Text: d.Text})
	case "thinking_delta":
		b.text.WriteString(d.Thinking)
		a.think(b, d.Thinking)
	case "signature_delta":
		b.signature += d.Signature
	case "input_json_delta":
		b.text.WriteString(d.PartialJSON)
		if d.PartialJSON != "" {
			a.sendDelta(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: b.number, Arguments: d.PartialJSON}})
		}
	}
}

// close tells what a block has not said: a call without arguments has empty ones.
func (a *answer) close(b *block) {
	if b.kind == toolBlock && b.text.Len() == 0 {
		b.text.WriteString(b.arguments())
		a.sendDelta(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: b.number, Arguments: b.text.String()}})
	}
}

// think tells a piece of a thought, apart from the thought before.
func (a *answer) think(b *block, text string) {
	if text != "" && a.thinking != nil && a.thinking != b {
		a.sendDelta(llm.Delta{Reasoning: betweenThoughts})
	}
	if text != "" {
		a.thinking = b
	}
	a.sendDelta(llm.Delta{Reasoning: text})
}

func (a *answer) sendDelta(d llm.Delta) {
	if a.sink != nil && (d.Text != "" || d.Reasoning != "" || d.ToolCall != nil) {
		a.sink(d)
	}
}

func (a *answer) calls() int {
	n := 0
	for _, b := range a.blocks {
		if b.kind == toolBlock {
			n++
		}
	}
	return n
}

// overlay takes over what the end of a stream tells; its numbers are totals.
func (u *usage) overlay(d sdk.MessageDeltaUsage) {
	for _, f := range []struct {
		valid bool
		into  *int64
		value int64
	}{
		{d.JSON.InputTokens.Valid(), &u.input, d.InputTokens},
		{d.JSON.OutputTokens.Valid(), &u.output, d.OutputTokens},
		{d.JSON.CacheReadInputTokens.Valid(), &u.read, d.CacheReadInputTokens},
		{d.JSON.CacheCreationInputTokens.Valid(), &u.written, d.CacheCreationInputTokens},
		{d.OutputTokensDetails.JSON.ThinkingTokens.Valid(), &u.thinking, d.OutputTokensDetails.ThinkingTokens},
	} {
		if f.valid {
			*f.into, u.told = f.value, true
		}
	}
}

// arguments are what the model wrote for a call. None at all are an empty object.
func (b *block) arguments() string {
	if b.text.Len() > 0 {
		return b.text.String()
	}
	if b.whole != "" {
		return b.whole
	}
	return "{}"
}

// thought is a block of thoughts as the service wants it back.
func (b *block) thought() json.RawMessage {
	if b.raw != nil {
		return b.raw
	}
	fields := map[string]string{"type": b.kind}
	if b.kind == redactedBlock {
		fields["data"] = b.data
	} else {
		fields["thinking"], fields["signature"] = b.text.String(), b.signature
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err) // a map of texts can always be written
	}
	return raw
}

// completion is the answer as the caller wants it. Key is kept out of what a refusal says.
func (a *answer) completion(r llm.Request, key string) (llm.Completion, error) {
	m := llm.Message{Role: llm.Assistant}
	var text, thoughts strings.Builder
	var order []place
	signed := false
	for _, b := range a.blocks {
		switch b.kind {
		case textBlock:
			text.WriteString(b.text.String())
			order = append(order, place{Text: b.text.Len()})
		case thinkingBlock, redactedBlock:
			if b.kind == thinkingBlock {
				if thoughts.Len() > 0 && b.text.Len() > 0 {
					thoughts.WriteString(betweenThoughts)
				}
				thoughts.WriteString(b.text.String())
			}
			signed = true
			order = append(order, place{Thought: b.thought()})
		case toolBlock:
			b.call.Arguments = b.arguments()
			m.ToolCalls = append(m.ToolCalls, b.call)
			order = append(order, place{Call: true})
		}
	}
	m.Content, m.Reasoning = text.String(), thoughts.String()
	if signed {
		m.Opaque = opaque(order)
	}
	if a.stop == "refusal" {
		return llm.Completion{}, a.refused(key)
	}
	c := llm.Completion{Message: m, Model: a.model, ServiceID: a.id, Finish: llm.FinishStop}
	switch {
	case a.stop == "max_tokens" || a.stop == "model_context_window_exceeded":
		c.Finish = llm.FinishLength
	case len(m.ToolCalls) > 0:
		c.Finish = llm.FinishToolCalls
	}
	c.Usage = llm.Usage{
		// The service counts what comes from its cache apart; everybody else counts it as input.
		InputTokens:  a.usage.input + a.usage.read + a.usage.written,
		OutputTokens: a.usage.output, CachedTokens: a.usage.read, ReasoningTokens: a.usage.thinking,
	}
	if !a.usage.told {
		c.Usage = llm.Estimate(r.Messages, m)
	}
	return c, nil
}

func (a *answer) refused(key string) error {
	text := "the model refused to answer"
	if a.refusal.Category != "" {
		text += " (" + string(a.refusal.Category) + ")"
	}
	if a.refusal.Explanation != "" {
		text += ": " + llm.Scrub(a.refusal.Explanation, key)
	}
	e := fault.New(fault.ModelRefused, text).With("provider", Name)
	if a.refusal.Category != "" {
		e = e.With("category", string(a.refusal.Category))
	}
	return e
}

// place is where a part of an answer stood. The service checks that thoughts come back where they were: before, between
// and after texts and calls. Exactly one field is set; Text is a length in bytes of the content, 0 for an empty text.
type place struct {
	Thought json.RawMessage `json:"thought,omitempty"`
	Text    int             `json:"text,omitempty"`
	Call    bool            `json:"call,omitempty"`
}

func opaque(order []place) *llm.Opaque {
	data, err := json.Marshal(order)
	if err != nil {
		return nil // a thought that is not JSON: the service sent none that it could want back
	}
	return &llm.Opaque{Provider: Name, Data: data}
}

// places reads the order of a message back. It is nil when there is none or when the message was changed since, so that
// the order no longer fits.
func places(m llm.Message) []place {
	if m.Opaque == nil || m.Opaque.Provider != Name {
		return nil
	}
	var order []place
	if json.Unmarshal(m.Opaque.Data, &order) != nil {
		return nil
	}
	text, calls := 0, 0
	for _, p := range order {
		text += p.Text
		if p.Call {
			calls++
		}
		if p.Text < 0 {
			return nil
		}
	}
	if text == len(m.Content) && calls == len(m.ToolCalls) {
		return order
	}
	var thoughts []place
	for _, p := range order {
		if p.Thought != nil {
			thoughts = append(thoughts, p)
		}
	}
	thoughts = append(thoughts, place{Text: len(m.Content)})
	for range m.ToolCalls {
		thoughts = append(thoughts, place{Call: true})
	}
	return thoughts
}
