package tree

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"tandem/api"
	"tandem/console/table"
	"tandem/engine"
	"tandem/payload"
)

// turns gives the steps of turns with models names that people understand. A step is an activation that a program has made
// (agent[0]/call_1_1), so it has no name of its own. What a completion wants is known before the calls begin, and names
// them. It is given the frames in order and belongs to one goroutine.
type turns struct {
	// wanted is what steps are about, by activation id.
	wanted map[string]wantedCall
	// shown is how much of the text of a completion lines have told, by activation id.
	shown map[string]*speech
	// tasks are the tasks whose steps were seen, by scope.
	tasks map[string]*taskTurn
}

// wantedCall is a tool call that a model wants.
type wantedCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// completion is what is read of the result of a completion.
type completion struct {
	Message struct {
		Content   string       `json:"content"`
		ToolCalls []wantedCall `json:"tool_calls"`
	} `json:"message"`
}

// stepOf splits the activation id of a program's step into its scope and its name; ok is false for a node of the workflow.
func stepOf(n *api.NodeExecution) (scope, name string, ok bool) {
	at := strings.LastIndexByte(n.ActivationID, '/')
	if at < 0 {
		return "", "", false
	}
	scope, name = n.ActivationID[:at], n.ActivationID[at+1:]
	return scope, name, n.InnerStep != ""
}

// stepKind is what a step does: "call_1_2" is a call.
func stepKind(name string) string {
	kind, _, _ := strings.Cut(name, "_")
	return kind
}

// takeStep reads a frame of a step and returns what the step is called, and what a completion has said when it has ended.
func (t *turns) takeStep(n *api.NodeExecution) (label, said string) {
	if label, said, _ := t.task(n); label != "" {
		return label, said
	}
	scope, name, ok := stepOf(n)
	if !ok {
		return "", ""
	}
	var about struct {
		Node  string `json:"attached_node"`
		Tool  string `json:"tool_name"`
		Model string `json:"ai_model"`
	}
	if len(n.ExecutionDetails) > 0 && json.Unmarshal(n.ExecutionDetails, &about) != nil {
		about.Node = "" // another program's; the name has to do
	}
	kind, number, _ := strings.Cut(name, "_")
	switch kind {
	case engine.StepComplete:
		said = t.completed(scope, number, n)
		return strings.TrimSpace("model " + about.Model), said
	case engine.StepCall, engine.StepApprove:
		wanted := t.wanted[scope+"/"+number]
		tool := cmp.Or(wanted.Name, about.Tool, "a tool")
		if kind == engine.StepApprove {
			return "may " + tool + " be called?", ""
		}
		return "tool " + tool + shortArguments(wanted.Arguments), ""
	case engine.StepLoad:
		return strings.TrimSpace("recall " + about.Node), ""
	case engine.StepStore:
		return strings.TrimSpace("remember " + about.Node), ""
	}
	if n.NodeName != "" && n.NodeName != n.NodeID {
		return n.NodeName, "" // a step that people know by a name
	}
	return name, ""
}

// completed remembers which calls a completion wants, and returns its text.
func (t *turns) completed(scope, number string, n *api.NodeExecution) string {
	var done completion
	if raw := n.OutputData["result"]; len(raw) == 0 || json.Unmarshal(raw, &done) != nil {
		return "" // under way, or too large to be shown here
	}
	for i, c := range done.Message.ToolCalls {
		if t.wanted == nil {
			t.wanted = map[string]wantedCall{}
		}
		t.wanted[scope+"/"+number+"_"+strconv.Itoa(i+1)] = c
	}
	return done.Message.Content
}

// shortArguments are the arguments of a call, as far as a line has room: path: "report.md", content: "# Sales…".
func shortArguments(raw string) string {
	const most = 40
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(raw), &args) != nil || len(args) == 0 {
		return ""
	}
	var parts []string
	for name, value := range args { // order does not matter: sorted below
		text := table.OneLine(payload.JSON(value))
		if r := []rune(text); len(r) > most {
			text = string(r[:most]) + "…"
		}
		parts = append(parts, table.OneLine(name)+": "+text)
	}
	slices.Sort(parts)
	return "(" + strings.Join(parts, ", ") + ")"
}

// speech is what a completion has said so far, for output that has lines only.
type speech struct {
	attempt int
	text    string
	// told is how much of the text was printed.
	told int
}

// hear takes a piece of text in and returns the lines that are complete by it.
func (t *turns) hear(p *api.PartialOutput) []string {
	s := t.shown[p.ActivationID]
	if s == nil || p.Attempt != s.attempt || p.Offset == 0 && !p.Snapshot {
		if t.shown == nil {
			t.shown = map[string]*speech{}
		}
		s = &speech{attempt: p.Attempt}
		t.shown[p.ActivationID] = s
	}
	switch {
	case p.Snapshot && p.Offset == 0 && len(p.Text) >= len(s.text):
		s.text = p.Text // all there is
	case int(p.Offset) == len(s.text):
		s.text += p.Text
	default:
		return nil // something was left out; the end tells it all
	}
	return s.lines(false)
}

// endSpeech returns what was not told of a completion that has ended.
func (t *turns) endSpeech(activation, said string) []string {
	s := t.shown[activation]
	delete(t.shown, activation)
	if s == nil || !strings.HasPrefix(said, s.text[:s.told]) {
		s = &speech{}
	}
	if said == "" {
		return nil
	}
	s.text = said
	return s.lines(true)
}

// lines are those that were not told yet; the last one only when it is over.
func (s *speech) lines(over bool) []string {
	rest := s.text[s.told:]
	if !over {
		rest = rest[:strings.LastIndexByte(rest, '\n')+1]
	}
	if rest == "" {
		return nil
	}
	s.told += len(rest)
	return strings.Split(strings.TrimSuffix(rest, "\n"), "\n")
}
