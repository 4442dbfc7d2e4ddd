package gemini

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"tandem/fault"
	"tandem/llm"
)

// answer is an answer that is being put together. One goroutine owns it.
type answer struct {
	request llm.Request
	sink    func(llm.Delta)

	text, thoughts strings.Builder
	calls          []llm.ToolCall
	order          []place
	signed         bool

	id, model     string
	finish        string
	finishMessage string
	ratings       []rating
	blocked       *feedback
	usage         *tokenCounts
}

// place is a part of an answer where a signature stood, or might have. The service wants its signatures back with the
// parts they came with. Text is a length in bytes of the content.
type place struct {
	Text      int    `json:"text,omitempty"`
	Call      bool   `json:"call,omitempty"`
	Signature string `json:"signature,omitempty"`
}

// takeReply adds an answer, or an event of one, and tells the sink.
func (a *answer) takeReply(r *reply) error {
	if r.ResponseID != "" {
		a.id = r.ResponseID
	}
	if r.ModelVersion != "" {
		a.model = r.ModelVersion
	}
	if r.UsageMetadata != nil {
		a.usage = r.UsageMetadata
	}
	if r.PromptFeedback != nil && r.PromptFeedback.BlockReason != "" {
		a.blocked = r.PromptFeedback
	}
	if len(r.Candidates) == 0 {
		return nil
	}
	c := r.Candidates[0]
	if c.FinishReason != "" && c.FinishReason != "FINISH_REASON_UNSPECIFIED" {
		a.finish, a.finishMessage = c.FinishReason, c.FinishMessage
	}
	if len(c.SafetyRatings) > 0 {
		a.ratings = c.SafetyRatings
	}
	for i := range c.Content.Parts {
		a.part(&c.Content.Parts[i])
	}
	return nil
}

func (a *answer) part(p *replyPart) {
	switch {
	case p.Thought:
		a.thoughts.WriteString(p.Text)
		if p.Text != "" {
			a.sendDelta(llm.Delta{Reasoning: p.Text})
		}
		return // thoughts that can be seen are not wanted back
	case p.FunctionCall != nil:
		a.call(p)
		return
	case p.Text == "" && p.ThoughtSignature == "":
		return
	}
	a.text.WriteString(p.Text)
	a.signed = a.signed || p.ThoughtSignature != ""
	if n := len(a.order); n > 0 && !a.order[n-1].Call && a.order[n-1].Signature == "" && p.ThoughtSignature == "" {
		a.order[n-1].Text += len(p.Text)
	} else {
		a.order = append(a.order, place{Text: len(p.Text), Signature: p.ThoughtSignature})
	}
	if p.Text != "" {
		a.sendDelta(llm.Delta{Text: p.Text})
	}
}

func (a *answer) call(p *replyPart) {
	raw := p.FunctionCall.Args
	c := llm.ToolCall{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Arguments: "{}"}
	if len(raw) > 0 && string(raw) != "null" {
		c.Arguments = string(raw)
	}
	if c.ID == "" {
		c.ID = a.newID(c)
	}
	a.calls = append(a.calls, c)
	a.order = append(a.order, place{Call: true, Signature: p.ThoughtSignature})
	a.signed = a.signed || p.ThoughtSignature != ""
	a.sendDelta(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: len(a.calls) - 1, ID: c.ID, Name: c.Name, Arguments: c.Arguments}})
}

// newID makes an id for a call that came without one. The same answer in the same conversation has the same ids, and no
// two calls of a conversation share one.
func (a *answer) newID(c llm.ToolCall) string {
	for salt := 0; ; salt++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %d %q %q %d", a.id, len(a.request.Messages), len(a.calls), c.Name, c.Arguments, salt))
		id := "call_" + hex.EncodeToString(sum[:10])
		if !a.taken(id) {
			return id
		}
	}
}

func (a *answer) taken(id string) bool {
	for _, c := range a.calls {
		if c.ID == id {
			return true
		}
	}
	for _, m := range a.request.Messages {
		for _, c := range m.ToolCalls {
			if c.ID == id {
				return true
			}
		}
	}
	return false
}

func (a *answer) sendDelta(d llm.Delta) {
	if a.sink != nil {
		a.sink(d)
	}
}

// complete says that the service has said how the answer ended.
func (a *answer) complete() bool { return a.finish != "" || a.blocked != nil }

// completion is the answer as the caller wants it. Key is kept out of what a refusal says.
func (a *answer) completion(key string) (llm.Completion, error) {
	if a.blocked != nil {
		text := "the service refused the prompt (" + a.blocked.BlockReason + ")"
		if a.blocked.BlockReasonMessage != "" {
			text += ": " + a.blocked.BlockReasonMessage
		}
		return llm.Completion{}, refusal(text, a.blocked.BlockReason, a.blocked.SafetyRatings, key)
	}
	m := llm.Message{Role: llm.Assistant, Content: a.text.String(), Reasoning: a.thoughts.String(), ToolCalls: a.calls}
	if a.signed {
		data, err := json.Marshal(a.order)
		if err != nil {
			return llm.Completion{}, fault.New(fault.Internal, "the signatures of an answer cannot be kept").WithCause(err)
		}
		m.Opaque = &llm.Opaque{Provider: Name, Data: data}
	}
	c := llm.Completion{Message: m, Model: a.model, ServiceID: a.id, Finish: llm.FinishStop}
	switch a.finish {
	case "STOP":
	case "":
		if m.Content == "" && len(m.ToolCalls) == 0 {
			return llm.Completion{}, fault.New(fault.RemoteError, "the gemini service answered with something that is not an answer; check the base URL").With("provider", Name)
		}
	case "MAX_TOKENS", "CONTINUATION":
		c.Finish = llm.FinishLength
	default:
		return llm.Completion{}, a.stopped(key)
	}
	if c.Finish == llm.FinishStop && len(m.ToolCalls) > 0 {
		c.Finish = llm.FinishToolCalls
	}
	c.Usage = a.used(m)
	return c, nil
}

func (a *answer) used(m llm.Message) llm.Usage {
	u := a.usage
	if u == nil || u.PromptTokenCount == 0 && u.CandidatesTokenCount == 0 && u.TotalTokenCount == 0 {
		return llm.Estimate(a.request.Messages, m)
	}
	return llm.Usage{
		InputTokens:     u.PromptTokenCount + u.ToolUsePromptTokenCount,
		OutputTokens:    u.CandidatesTokenCount + u.ThoughtsTokenCount, // the service counts thoughts apart
		CachedTokens:    u.CachedContentTokenCount,
		ReasoningTokens: u.ThoughtsTokenCount,
	}
}

// stopped is the error of an answer that ended otherwise than by itself or by its length.
func (a *answer) stopped(key string) error {
	why := a.finish
	said := ""
	if a.finishMessage != "" {
		said = ": " + a.finishMessage
	}
	switch a.finish {
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY",
		"IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return refusal("the answer was stopped by the service ("+why+")"+said, why, a.ratings, key)
	}
	// A call that the model botched, or a reason that is not told: asking again often helps.
	return fault.New(fault.RemoteError, llm.Scrub("the model's answer ended with "+why+said, key)).With("provider",
		Name).With("finish_reason", why)
}

// refusal is the error of what the service does not let through, with the categories that it names.
func refusal(text, reason string, ratings []rating, key string) error {
	var named []string
	for _, r := range ratings {
		if r.Blocked || len(ratings) == 1 {
			named = append(named, r.Category)
		}
	}
	if len(named) == 0 { // nothing is marked: the likely ones
		for _, r := range ratings {
			if r.Probability == "HIGH" || r.Probability == "MEDIUM" {
				named = append(named, r.Category)
			}
		}
	}
	category := reason
	if len(named) > 0 {
		category = strings.Join(named, ", ")
		text += ", category " + category
	}
	return fault.New(fault.ModelRefused, llm.Scrub(text, key)).With("provider", Name).With("category", category).With("reason", reason)
}
