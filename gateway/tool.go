package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/api"
	"tandem/client"
	"tandem/fault"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// The tools that every caller has.
const (
	toolStatus = "execution_status"
	toolResume = "execution_resume"
	// agentPrefix is before the names of agents' tools.
	agentPrefix = "agent_"
)

const (
	// maxTools is how many workflows, and how many agents, are shown; listSize how many are asked for at once.
	maxTools = 1000
	listSize = 100
	// maxName is the length of a name that every client takes.
	maxName = 64
	// maxAbout bounds descriptions: clients give all of them to a model.
	maxAbout = 2000
)

// tool is what a client is shown of a workflow or an agent. Two that are the same are equal.
type tool struct {
	name, title, about string
	// schema is that of the arguments, a JSON object of type object.
	schema string
	// agent says what id is of.
	agent bool
	id    string
}

// reading is what was read of a revision of a workflow.
type reading struct {
	revision int64
	schema   string
}

// openSchema is that of a workflow that does not say what it takes.
const openSchema = `{"type":"object","description":"The inputs of the workflow, by name."}`

// agentSchema is that of every agent. read-only
var agentSchema = `{"type":"object","required":["question"],"additionalProperties":false,"properties":{` +
	`"question":{"type":"string","minLength":1,"maxLength":2000,"description":"What the agent shall do: the goal, in words."},` +
	`"metadata":{"type":"object","description":"What is known already, by name."},` +
	`"conversation_id":{"type":"string","maxLength":200,"description":"Tasks with the same one know the last three of them."},` +
	`"language":{"type":"string","enum":["` + strings.Join(text.Languages(), `","`) + `"]}}}`

func (s *Server) knows(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.tools[name]
	return known || name == toolStatus || name == toolResume
}

// listed says whether it was looked at all.
func (s *Server) listed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools != nil
}

// list compares the tools with what there is, and changes what is different; clients that listen are told of that.
func (s *Server) list(ctx context.Context) error {
	s.listing.Lock()
	defer s.listing.Unlock()
	workflows, err := s.workflows(ctx)
	if err != nil {
		return err
	}
	agents, err := s.agents(ctx)
	if err != nil {
		return err
	}
	now := make(map[string]tool, len(workflows)+len(agents))
	for _, t := range append(agents, workflows...) {
		if _, taken := now[t.name]; taken {
			t.name = marked(t.name, t.name+"\x00"+t.id) // two hashes are the same: nobody will see it
		}
		now[t.name] = t
	}
	s.mu.Lock()
	before := s.tools
	s.tools = now
	s.mu.Unlock()
	var gone []string
	for name := range before { // order does not matter: they are removed together
		if _, there := now[name]; !there {
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 {
		s.mcp.RemoveTools(gone...)
	}
	for name, t := range now { // order does not matter: the list is sorted by the names
		if before[name] != t {
			s.mcp.AddTool(&mcp.Tool{Name: name, Title: t.title, Description: t.about, InputSchema: json.RawMessage(t.schema)}, s.handler(t))
		}
	}
	return nil
}

// workflows are the tools of all that are deployed.
func (s *Server) workflows(ctx context.Context) ([]tool, error) {
	var tools []tool
	seen := map[string]bool{}
	for page := 1; len(tools) < maxTools; page++ {
		part, err := s.api.Workflows(ctx, client.WorkflowQuery{Deployed: true, Page: page, PageSize: listSize})
		if err != nil {
			return nil, err
		}
		for i := range part.Workflows {
			w := &part.Workflows[i]
			if strings.Contains(w.ID, ":") || seen[w.ID] || len(tools) == maxTools { // a colon: not made by people
				continue
			}
			r, known := s.read[w.ID]
			if !known || r.revision != w.DeployedRevision {
				whole, err := s.api.Workflow(ctx, w.ID, w.DeployedRevision)
				if fault.CodeOf(err) == fault.NotFound {
					continue // it was deleted since
				}
				if err != nil {
					return nil, err
				}
				r = reading{w.DeployedRevision, schemaOf(&whole)}
				s.read[w.ID] = r
			}
			seen[w.ID] = true
			tools = append(tools, tool{
				name: toolName(w.ID), title: w.Name, schema: r.schema, id: w.ID,
				about: text.ClipBytes(cmp.Or(w.Description, "Runs the workflow "+cmp.Or(w.Name, w.ID)+"."), maxAbout),
			})
		}
		if len(part.Workflows) < listSize {
			break
		}
	}
	for id := range s.read { // order does not matter: each is looked at by itself
		if !seen[id] {
			delete(s.read, id)
		}
	}
	return tools, nil
}

// agents are the tools of all agents.
func (s *Server) agents(ctx context.Context) ([]tool, error) {
	var tools []tool
	for page := 1; len(tools) < maxTools; page++ {
		part, err := s.api.Agents(ctx, client.AgentQuery{Page: page, PageSize: listSize})
		if err != nil {
			return nil, err
		}
		for _, a := range part.Agents {
			tools = append(tools, tool{
				name: agentToolName(a.ID), title: a.Name, schema: agentSchema, agent: true, id: a.ID,
				about: text.ClipBytes(strings.TrimSpace("Gives the agent "+cmp.Or(a.Name, a.ID)+" a task. "+a.Description), maxAbout),
			})
		}
		if len(part.Agents) < listSize {
			break
		}
	}
	return tools, nil
}

// toolName is the name of a workflow's tool: its id, if every client takes that. Otherwise it is as near to it as possible, with a mark by
// which no two are the same, whatever else is deployed.
func toolName(id string) string {
	name := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, id)
	if name == id && len(id) <= maxName && id != "" && id != toolStatus && id != toolResume && !strings.HasPrefix(id, agentPrefix) {
		return id
	}
	return marked(name, id)
}

func agentToolName(id string) string {
	if name := agentPrefix + id; len(name) <= maxName {
		return name
	}
	return marked(agentPrefix+id, id)
}

// marked is a name with a mark that is made of an id.
func marked(name, id string) string {
	sum := sha256.Sum256([]byte(id))
	mark := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), maxName-len(mark))] + mark
}

// schemaOf is what a workflow takes, as the trigger says that starts it.
func schemaOf(w *api.Workflow) string {
	for _, node := range w.Nodes {
		var n struct {
			ID      string `json:"id"`
			Type    string `json:"type"`
			Subtype string `json:"subtype"`
			Config  struct {
				Enabled any             `json:"enabled"`
				Schema  json.RawMessage `json:"input_schema"`
			} `json:"configurations"`
		}
		if json.Unmarshal(node, &n) != nil || n.Type != workflow.TypeTrigger {
			continue // configurations that are written otherwise say nothing about inputs
		}
		if n.Config.Enabled == false || n.Config.Enabled == "false" || len(w.Triggers) > 0 && !slices.Contains(w.Triggers, n.ID) {
			continue
		}
		if n.Subtype != "MANUAL" { // the first trigger is the one that a start by hand uses
			return openSchema
		}
		return inputSchema(n.Config.Schema)
	}
	return openSchema
}

// inputSchema is a schema as clients take it: a readable one, of an object. One bad schema would make a client refuse the whole list. Keys
// that the protocol gives a meaning of its own are left out.
func inputSchema(schema json.RawMessage) string {
	var object map[string]json.RawMessage
	if json.Unmarshal(schema, &object) != nil || object == nil {
		return openSchema
	}
	clean := withoutHeaders(bytes.TrimSpace(schema))
	kind, said := payload.Field(clean, "type")
	if !said {
		kind = json.RawMessage(`"object"`)
		clean = payload.WithField(clean, "type", kind)
	}
	if payload.Text(kind) != "object" {
		return openSchema
	}
	if properties, ok := payload.Field(clean, "properties"); ok && properties[0] == '{' {
		members := payload.Members(properties)
		for n := range members { // there are clients that take objects only
			switch string(members[n].Value) {
			case "true":
				members[n].Value = json.RawMessage(`{}`)
			case "false":
				members[n].Value = json.RawMessage(`{"not":{}}`)
			}
		}
		clean = payload.WithField(clean, "properties", payload.AppendObject(nil, members))
	}
	var readable jsonschema.Schema
	if json.Unmarshal(clean, &readable) != nil {
		return openSchema
	}
	return string(clean)
}

// withoutHeaders is a value without the keys that name headers, at any depth. The others keep their order.
func withoutHeaders(value json.RawMessage) json.RawMessage {
	switch value[0] {
	case '{':
		members := slices.DeleteFunc(payload.Members(value), func(m payload.Member) bool { return m.Key == "x-mcp-header" })
		for n := range members {
			members[n].Value = withoutHeaders(members[n].Value)
		}
		return payload.AppendObject(nil, members)
	case '[':
		items := payload.Items(value)
		for n := range items {
			items[n] = withoutHeaders(items[n])
		}
		return payload.AppendList(nil, items)
	}
	return value
}

// handler carries calls of a tool out.
func (s *Server) handler(t tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return s.call(ctx, req, func(ctx context.Context) (string, error) { return s.start(ctx, t, req.Params.Arguments) })
	}
}

// start starts what a tool stands for. A connection that breaks is made again and does not start it twice.
func (s *Server) start(ctx context.Context, t tool, arguments json.RawMessage) (string, error) {
	key := "mcp-" + rand.Text()
	if t.agent {
		var task api.TaskRequest
		if err := readArguments(arguments, &task); err != nil {
			return "", err
		}
		// What the schema does not name is not the caller's to say here.
		started, err := s.api.StartTask(ctx, t.id, api.TaskRequest{Question: task.Question, Metadata: task.Metadata,
			ConversationID: task.ConversationID, Language: task.Language}, key)
		return started.ExecutionID, err
	}
	w, err := s.api.Workflow(ctx, t.id, 0)
	if err != nil {
		return "", err
	}
	if w.Metadata.DeployedRevision == 0 {
		return "", fault.Newf(fault.Conflict, "workflow %q is no longer deployed; list the tools again", t.id)
	}
	started, err := s.api.Execute(ctx, t.id, api.ExecuteRequest{Inputs: arguments, Revision: w.Metadata.DeployedRevision}, key)
	return started.ExecutionID, err
}

func readArguments(arguments json.RawMessage, into any) error {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	if err := json.Unmarshal(arguments, into); err != nil {
		return fault.Newf(fault.InvalidInput, "the arguments do not fit the tool's schema: %w", err)
	}
	return nil
}
