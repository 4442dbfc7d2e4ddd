// Package scripted is the provider that needs no model: it answers from a script, always the same way, without a network.
//
// Examples, tests and recorded runs use it. A request is first looked for among the recorded answers, by its fingerprint;
// then the rules are tried in order. It streams like a service does, word by word, but takes no time. It is not a model
// and guesses nothing: a request that nothing fits is an error that says what was asked.
//
// The catalogue of app registers it; nobody else needs to import it.
package scripted

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/llm"
	"tandem/payload"
	"tandem/text"
)

// Provider answers from a script. It also embeds, by hashing.
type Provider struct {
	rules []rule
	// recorded is decoded anew for every answer, which then belongs to who asked.
	recorded map[string]json.RawMessage
}

var _ interface {
	llm.Provider
	llm.Embedder
} = (*Provider)(nil)

// rule is a rule that is ready to be tried.
type rule struct {
	llm.Rule
	matches *regexp.Regexp
}

// New makes the provider of a script. It refuses a script that could never be played.
func New(s llm.Settings) (llm.Provider, error) {
	p := &Provider{recorded: s.Script.Recorded}
	for i, r := range s.Script.Rules {
		ready, err := compile(r)
		if err != nil {
			return nil, fault.Newf(fault.InvalidConfig, "rule %d of the script: %w", i+1, err)
		}
		p.rules = append(p.rules, ready)
	}
	for _, key := range slices.Sorted(maps.Keys(p.recorded)) {
		if _, err := readRecording(key, p.recorded[key]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func readRecording(key string, raw json.RawMessage) (llm.Recording, error) {
	var r llm.Recording
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fault.Newf(fault.InvalidConfig, "the recorded answer %q cannot be read: %w", key, err)
	}
	if r.Completion == nil && r.Error == nil {
		return r, fault.Newf(fault.InvalidConfig, "the recorded answer %q has neither a message nor an error; record the run again", key)
	}
	return r, nil
}

func compile(r llm.Rule) (rule, error) {
	ready := rule{Rule: r}
	if r.Matches != "" {
		var err error
		if ready.matches, err = regexp.Compile(r.Matches); err != nil {
			return rule{}, fmt.Errorf("matches: %w", err)
		}
	}
	if r.Fail != "" && !slices.Contains(fault.Codes(), fault.Code(r.Fail)) {
		return rule{}, fmt.Errorf("fail: there is no error code %q; use one like %q", r.Fail, fault.RateLimited)
	}
	if r.Reply != "" && len(r.JSON) > 0 {
		return rule{}, fmt.Errorf("it has both reply and json; keep one")
	}
	if r.Reply == "" && len(r.JSON) == 0 && len(r.Calls) == 0 && r.Fail == "" && r.Finish == "" {
		return rule{}, fmt.Errorf("it says nothing; give it a reply, json, calls or fail")
	}
	if len(r.JSON) > 0 && !json.Valid(r.JSON) {
		return rule{}, fmt.Errorf("json is not JSON")
	}
	for i, c := range r.Calls {
		if c.Name == "" {
			return rule{}, fmt.Errorf("call %d has no name", i+1)
		}
		if len(c.Arguments) > 0 && !json.Valid(c.Arguments) {
			return rule{}, fmt.Errorf("the arguments of call %d are not JSON", i+1)
		}
	}
	switch r.Finish {
	case "", llm.FinishStop, llm.FinishLength, llm.FinishToolCalls:
	default:
		return rule{}, fmt.Errorf("finish_reason %q is none of stop, length, tool_calls", r.Finish)
	}
	return ready, nil
}

// Complete answers from the script.
func (p *Provider) Complete(ctx context.Context, r llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
	if err := ctx.Err(); err != nil {
		return llm.Completion{}, canceled(ctx)
	}
	key := llm.Fingerprint(r)
	c, err := p.answer(r, key)
	if err != nil {
		return llm.Completion{}, err
	}
	if r.Stream && sink != nil {
		if err := stream(ctx, c.Message, sink); err != nil {
			return llm.Completion{}, err
		}
	}
	return c, nil
}

// canceled is the end of a context as an error.
func canceled(ctx context.Context) error {
	return fault.New(fault.Canceled, "the call was canceled").WithCause(context.Cause(ctx))
}

func (p *Provider) answer(r llm.Request, key string) (llm.Completion, error) {
	if raw, ok := p.recorded[key]; ok {
		recorded, err := readRecording(key, raw)
		switch {
		case err != nil:
			return llm.Completion{}, err
		case recorded.Error == nil:
			return *recorded.Completion, nil
		case recorded.RetryAfterMS > 0:
			return llm.Completion{}, &llm.Unavailable{Err: recorded.Error,
				RetryAfter: time.Duration(recorded.RetryAfterMS) * time.Millisecond}
		}
		return llm.Completion{}, recorded.Error
	}
	asked := read(r)
	for i, rule := range p.rules {
		found, ok := rule.fits(asked)
		if !ok {
			continue
		}
		if rule.Fail != "" {
			text := fill(rule.Reply, asked, found, plain)
			if text == "" {
				text = fmt.Sprintf("the script wants this call to end with an error (rule %d)", i+1)
			}
			return llm.Completion{}, fault.New(fault.Code(rule.Fail), text)
		}
		return rule.complete(r, asked, found, key), nil
	}
	return llm.Completion{}, p.unknown(asked, key)
}

// asked is what rules look at.
type asked struct {
	// person is the last message of a person, last the last message of all, tool the last result of a tool.
	person, last, tool string
	// answering is the tool whose result is the last message.
	answering string
	// system are the instructions, then what memories know.
	system []string
	schema string
	tools  []string
}

func read(r llm.Request) asked {
	var a asked
	for _, m := range r.Messages {
		if m.Role == llm.System {
			a.system = append(a.system, m.Content)
			continue // an instruction is not said within the conversation
		}
		a.last, a.answering = m.Content, ""
		switch m.Role {
		case llm.User:
			a.person = m.Content
		case llm.ToolRole:
			a.tool, a.answering = m.Content, m.ToolName
		}
	}
	if r.Schema != nil {
		a.schema = r.Schema.Name
	}
	for _, t := range r.Tools {
		a.tools = append(a.tools, t.Name)
	}
	return a
}

// fits tries a rule. It returns what its expression has found, the whole first.
func (r rule) fits(a asked) ([]string, bool) {
	switch {
	case r.Contains != "" && !strings.Contains(a.person, r.Contains),
		r.System != "" && !slices.ContainsFunc(a.system, func(s string) bool { return strings.Contains(s, r.System) }),
		r.Tool != "" && r.Tool != a.answering,
		r.Schema != "" && r.Schema != a.schema:
		return nil, false
	}
	if r.matches == nil {
		return nil, true
	}
	found := r.matches.FindStringSubmatch(a.person)
	return found, found != nil
}

func (r rule) complete(request llm.Request, a asked, found []string, key string) llm.Completion {
	m := llm.Message{Role: llm.Assistant, Content: fill(r.Reply, a, found, plain), Reasoning: r.Reasoning}
	if len(r.JSON) > 0 {
		m.Content = fill(string(r.JSON), a, found, quoted)
	}
	for i, c := range r.Calls {
		arguments := "{}"
		if len(c.Arguments) > 0 {
			arguments = fill(string(c.Arguments), a, found, quoted)
		}
		m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: callID(key, i), Name: c.Name, Arguments: arguments})
	}
	finish := r.Finish
	if finish == "" {
		finish = llm.FinishStop
		if len(m.ToolCalls) > 0 {
			finish = llm.FinishToolCalls
		}
	}
	return llm.Completion{
		Message: m, Usage: llm.Estimate(request.Messages, m), Finish: finish, Model: request.Model,
		ServiceID: "scripted_" + short(key),
	}
}

// callID names the call of an answer. A longer conversation is another request, so no id comes twice in one.
func callID(key string, i int) string { return fmt.Sprintf("call_%s_%d", short(key), i) }

func short(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}

// plain and quoted are how a text is put into an answer: as it is, and into a string of a JSON text.
func plain(s string) string { return s }

func quoted(s string) string {
	return string(payload.AppendEscaped(nil, s)) // the quotes are those of the text around it
}

// fill puts what was asked into an answer, in one pass, so that nothing that was asked is read as part of the rule.
// A group that the expression does not have stays as it is written: "$5" may be a price.
func fill(template string, a asked, found []string, put func(string) string) string {
	var b strings.Builder
	for i := 0; i < len(template); {
		rest := template[i:]
		switch {
		case strings.HasPrefix(rest, "{{last}}"):
			b.WriteString(put(a.last))
			i += len("{{last}}")
		case strings.HasPrefix(rest, "{{tool}}"):
			b.WriteString(put(a.tool))
			i += len("{{tool}}")
		case strings.HasPrefix(rest, "{{tool.") && strings.Contains(rest, "}}"):
			end := strings.Index(rest, "}}")
			b.WriteString(put(gjson.Get(a.tool, rest[len("{{tool."):end]).String()))
			i += end + len("}}")
		case strings.HasPrefix(rest, "{{system}}"):
			if n := len(a.system); n > 0 {
				b.WriteString(put(a.system[n-1]))
			}
			i += len("{{system}}")
		case len(rest) > 1 && rest[0] == '$' && rest[1] >= '1' && rest[1] <= '9' && int(rest[1]-'0') < len(found):
			b.WriteString(put(found[rest[1]-'0']))
			i += 2
		default:
			b.WriteByte(template[i])
			i++
		}
	}
	return b.String()
}

// unknown says what was asked that no rule fits.
func (p *Provider) unknown(a asked, key string) error {
	text := fmt.Sprintf("no rule of the script fits (%d rules, %d recorded answers): the last message of a person is %q", len(p.rules), len(p.recorded), excerpt(a.person))
	if a.answering != "" {
		text += fmt.Sprintf(", the last message is the result of the tool %q", a.answering)
	}
	if a.schema != "" {
		text += fmt.Sprintf(", the answer is to have the shape %q", a.schema)
	}
	if len(a.tools) > 0 {
		text += fmt.Sprintf(", the tools are %q", a.tools)
	}
	return fault.New(fault.NotFound, text+"; add a rule for it, or one without conditions at the end").With("fingerprint", key)
}

// excerpt is the beginning of a text.
func excerpt(said string) string { return text.Clip(said, 80) }

// Embed embeds by hashing; the model does not matter.
func (p *Provider) Embed(ctx context.Context, _ string, texts []string) ([][]float32, llm.Usage, error) {
	if ctx.Err() != nil {
		return nil, llm.Usage{}, canceled(ctx)
	}
	vectors := make([][]float32, len(texts))
	usage := llm.Usage{Estimated: true}
	for i, text := range texts {
		vectors[i] = llm.HashEmbed(text)
		usage.InputTokens += llm.Tokens(text)
	}
	return vectors, usage, nil
}
