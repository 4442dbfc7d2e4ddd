package builtin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	paths "path"
	"slices"
	"strings"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/mcp"
	"tandem/node"
	"tandem/payload"
	"tandem/workflow"
)

type mcpToolConfig struct {
	ServerID       string          `json:"server_id" required:"true" doc:"The registered tool server." zh:"已登记的工具服务器。"`
	AvailableTools []string        `json:"available_tools" doc:"The tools that are offered; without them all." zh:"提供哪些工具；省略时为全部。"`
	ToolPrefix     string          `json:"tool_prefix" doc:"What stands before the names of the tools." zh:"工具名称的前缀。"`
	Approval       string          `json:"approval" enum:"inherit|never|always" doc:"Whether a person is asked before a tool is used; inherit leaves it to the agent." zh:"使用工具前是否询问人员；inherit 由智能体决定。"`
	ToolName       string          `json:"tool_name" doc:"The tool that a node runs which stands alone." zh:"独立节点运行的工具。"`
	FunctionArgs   node.Object     `json:"function_args" doc:"The arguments of the tool, for a node that stands alone." zh:"独立节点调用工具的参数。"`
	Context        json.RawMessage `json:"context" doc:"Anything that comes back with the result." zh:"随结果一并返回的任意内容。"`
	CallID         string          `json:"call_id" doc:"A name of the call that comes back with the result." zh:"随结果一并返回的调用编号。"`
	CallTimeout    int64           `json:"call_timeout_seconds" range:"1..600" doc:"How long a server may be silent during a call, in seconds." zh:"调用期间服务器最长无响应时间（秒）。"`
	// ServerURL is what older files have; it starts nothing.
	ServerURL json.RawMessage `json:"mcp_server_url" doc:"What older files have; it is ignored." zh:"旧文件中的字段，已忽略。"`
}

func (c *mcpToolConfig) Defaults() { c.Approval, c.CallTimeout = "inherit", 60 }

// silence is how long a call may be without a word of the server, limit how long it may take in all, whatever the progress.
func (c *mcpToolConfig) silence() time.Duration { return time.Duration(c.CallTimeout) * time.Second }
func (c *mcpToolConfig) limit() time.Duration   { return max(10*time.Minute, 10*c.silence()) }

// connecting is what a call may take besides: the server may have to be started first.
const connecting = 2 * time.Minute

// mcpTools gives a model the tools of a registered server, as the user of the execution has accepted them. What the user has not
// accepted is asked for before it is used: the server itself, or how a tool of it has changed.
func mcpTools(pool *mcp.Pool) []node.Kind {
	if pool == nil {
		return nil
	}
	k := node.Raw(
		node.About{
			Name: "TOOL.MCP_TOOL", Title: says("MCP tools", "MCP 工具"),
			Description: says("Uses the tools of a registered MCP server.", "使用已登记的 MCP 服务器的工具。"),
			Effect:      workflow.Once,
			Older:       []string{"TOOL.SLACK_MCP_TOOL", "TOOL.DISCORD_MCP_TOOL", "TOOL.NOTION_MCP_TOOL", "TOOL.GOOGLE_CALENDAR_MCP_TOOL", "TOOL.FIRECRAWL_MCP_TOOL"},
			Keys:        toolKeys(),
			Needs:       node.Needs{Also: []node.Text{says("A tool server that is stored and activated.", "已保存并激活的工具服务器。")}},
			Examples: []node.Example{
				{
					Shows:  says("Calls a tool of the server \"weather\".", "调用服务器 weather 的工具。"),
					Config: `{"server_id": "weather"}`,
					Input:  `{"tool_name": "forecast", "function_args": {"city": "Bern"}}`,
					Output: `{"result": {"result": {"degrees": 21, "message": "{\"degrees\":21}"}, "success": true, "error_message": "", "execution_time": "…", "cached": false, "degrees": 21, "message": "{\"degrees\":21}"}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg mcpToolConfig, in toolInput) (node.Outcome, error) {
			s := toolServer{pool: pool, call: call, cfg: &cfg}
			if err := s.settle(ctx); err != nil {
				return nil, err
			}
			return s.run(ctx, in)
		}, planMCPTool)
	k.OutputSchema = codeTool().OutputSchema // that of every set of tools
	k.Ready = func(ctx context.Context, call *node.Call) (*node.Wait, error) {
		cfg, err := node.Configuration[mcpToolConfig](call.Config)
		if err != nil {
			return nil, err
		}
		s := toolServer{pool: pool, call: call, cfg: &cfg}
		if err := s.settle(ctx); err != nil {
			return nil, err
		}
		return s.ready(ctx)
	}
	k.Tools = func(ctx context.Context, call *node.Call) ([]node.Tool, error) {
		cfg, err := node.Configuration[mcpToolConfig](call.Config)
		if err != nil {
			return nil, err
		}
		s := toolServer{pool: pool, call: call, cfg: &cfg}
		return s.offer(ctx)
	}
	return []node.Kind{toolSet(k)}
}

// toolServer is a server as one run uses it.
type toolServer struct {
	pool *mcp.Pool
	call *node.Call
	cfg  *mcpToolConfig
	// agreed is the call that a person has agreed to in answer to this run's question, changed says that they have accepted changes of tools.
	agreed  string
	changed bool
}

func (s *toolServer) who() identity.Principal { return callerOf(s.call) }

// mcpMemo is what a question was about. What is accepted is what was shown, and nothing that came later.
type mcpMemo struct {
	Purpose string       `json:"purpose"`
	Node    string       `json:"node"`
	Server  string       `json:"server"`
	Changes []mcp.Change `json:"changes,omitempty"`
	// Hash is that of a call that was asked about.
	Hash string `json:"hash,omitempty"`
}

// settle does what a person has answered, if this run follows an answer to this node. Doing it again changes nothing.
func (s *toolServer) settle(ctx context.Context) error {
	wake := s.call.Wake
	if wake == nil || len(s.call.Memo) == 0 {
		return nil
	}
	var memo mcpMemo
	if err := json.Unmarshal(s.call.Memo, &memo); err != nil || memo.Node != s.call.NodeID || memo.Server != s.cfg.ServerID {
		return nil // the question of another node
	}
	if memo.Purpose == human.PurposeToolApproval {
		if wake.Outcome != engine.AskDone || !approves(wake.Payload) {
			return fault.Newf(fault.Forbidden, "a person has refused this call of a tool of server %q", memo.Server).With("server_id", memo.Server)
		}
		s.agreed = memo.Hash
		return nil
	}
	if wake.Outcome != engine.AskDone || !accepts(wake.Payload) {
		refused := fault.Newf(fault.Forbidden, "the tool server %q is not used: nobody has accepted that", memo.Server)
		if memo.Purpose == human.PurposeDrift {
			refused = fault.Newf(fault.Forbidden, "the changed tools of server %q are not used: nobody has accepted the difference (%s)", memo.Server, strings.Join(summaries(memo.Changes), "; "))
		}
		return refused.With("server_id", memo.Server)
	}
	by, err := s.pool.AnsweredBy(ctx, s.who(), wake.Person, s.call.ExecutionID)
	if err != nil {
		return err
	}
	if memo.Purpose == human.PurposeDrift {
		s.changed = true
		if _, err := s.pool.Accept(ctx, s.who(), memo.Server, by, memo.Changes); err != nil {
			return toolFault(err)
		}
		return nil
	}
	if _, err := s.pool.Pinned(ctx, s.who(), memo.Server); err == nil {
		return nil // somebody was faster, or this run is a second one
	}
	if _, err := s.pool.Activate(ctx, s.who(), memo.Server, mcp.Activation{By: by.By, Execution: by.Execution}); err != nil {
		return toolFault(err)
	}
	return nil
}

// accepts reads an answer. Only a plain yes is one.
func accepts(raw json.RawMessage) bool {
	var answer struct {
		Accept json.RawMessage `json:"accept"`
	}
	return json.Unmarshal(raw, &answer) == nil && string(answer.Accept) == "true"
}

// ask asks a person: whether the server may be used, or whether its tools may be as they are now.
func (s *toolServer) ask(purpose string, changes []mcp.Change) (*node.Wait, error) {
	say := func(zh, en string) string { return wording(speaks(s.call, ""), zh, en) }
	server := s.cfg.ServerID
	title := fmt.Sprintf(say("是否启用工具服务器 %s？", "Activate the tool server %s?"), server)
	text := say("工作流要使用该服务器的工具，而发起人尚未启用它。接受后，其工具按当前定义固定下来。",
		"The workflow wants to use its tools, and the user who started it has not activated it. Accepting pins the tools as they are now.")
	key := purpose + ":" + server
	if purpose == human.PurposeDrift {
		title = fmt.Sprintf(say("服务器 %s 的工具已变化，是否接受？", "Tools of server %s have changed. Accept that?"), server)
		text = strings.Join(summaries(changes), "; ")
		shown, err := payload.Encode(changes)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(shown)
		key += ":" + hex.EncodeToString(sum[:8])
	}
	content := map[string]any{"server_id": server}
	if len(changes) > 0 {
		content["changes"] = changes
	}
	request, err := payload.Encode(map[string]any{"interaction_type": human.Approval, "title": title, "description": text, "content": content})
	if err != nil {
		return nil, err
	}
	memo, err := payload.Encode(mcpMemo{Purpose: purpose, Node: s.call.NodeID, Server: server, Changes: changes})
	if err != nil {
		return nil, err
	}
	return &node.Wait{Ask: &node.Question{Purpose: purpose, Request: request, Key: key}, Memo: memo}, nil
}

// ready says what a person has to decide before the tools can be offered.
func (s *toolServer) ready(ctx context.Context) (*node.Wait, error) {
	changes, err := s.pool.Check(ctx, s.who(), s.cfg.ServerID)
	if e, ok := errors.AsType[*mcp.Error](err); ok && e.Kind == mcp.NotActivated {
		return s.ask(human.PurposeActivation, nil)
	}
	if err != nil {
		return nil, nil // offer says what is wrong, or does without
	}
	var changed []mcp.Change
	for _, c := range changes {
		if ok, err := s.cfg.allows(c.Tool); err != nil {
			return nil, err
		} else if ok && c.Kind == mcp.Changed {
			changed = append(changed, c)
		}
	}
	if len(changed) == 0 {
		return nil, nil
	}
	return s.ask(human.PurposeDrift, changed)
}

// offer lists the tools that the user has accepted and the server still has.
func (s *toolServer) offer(ctx context.Context) ([]node.Tool, error) {
	pinned, err := s.pool.Pinned(ctx, s.who(), s.cfg.ServerID)
	if err != nil {
		return nil, toolFault(err)
	}
	changes, err := s.pool.Check(ctx, s.who(), s.cfg.ServerID)
	if err != nil {
		// What was accepted is known. A call says the same again, to the model, which can do without.
		s.call.Log(node.Warn, "the tool server cannot be reached; its tools are offered as they were accepted", map[string]any{"server": s.cfg.ServerID, "error": toolFault(err).Message})
	}
	kind := map[string]mcp.ChangeKind{}
	for _, c := range changes {
		if kind[c.Tool] = c.Kind; c.Kind == mcp.Added {
			s.call.Log(node.Notice, "a tool is new and not offered until somebody accepts it", map[string]any{"server": s.cfg.ServerID, "tool": c.Tool})
		}
	}
	standings, err := s.pool.Standings(ctx, s.who(), s.cfg.ServerID, pinned)
	if err != nil {
		return nil, err
	}
	var list []node.Tool
	for _, t := range pinned {
		ok, err := s.cfg.allows(t.Name)
		if err != nil {
			return nil, err
		}
		if !ok || kind[t.Name] == mcp.Removed {
			continue
		}
		standing := standings[t.Name]
		if standing.Decision == mcp.Refused && !standing.ByArgument {
			s.call.Log(node.Notice, "a tool is not offered: a policy says never", map[string]any{"server": s.cfg.ServerID, "tool": t.Name, "set_by": standing.By})
			continue
		}
		policy, err := payload.Encode(policyOf(t, standing))
		if err != nil {
			return nil, err
		}
		list = append(list, node.Tool{
			Policy: policy,
			Name:   s.cfg.ToolPrefix + mcp.ModelName(t.Server, t.Name), Description: t.Description, Parameters: t.InputSchema, Effect: mcp.Effect(t), Approval: s.cfg.Approval,
			TimeoutMS: (s.cfg.limit() + connecting).Milliseconds(),
		})
	}
	return list, nil
}

// allows says whether available_tools lets a tool be used. Its patterns are of the tools' names, or of server/tool.
func (c *mcpToolConfig) allows(tool string) (bool, error) {
	if len(c.AvailableTools) == 0 {
		return true, nil
	}
	plain := strings.NewReplacer("/", "\x00") // to a pattern, a name is one piece
	for i, pattern := range c.AvailableTools {
		for _, name := range []string{tool, mcp.ToolID(c.ServerID, tool), mcp.ModelName(c.ServerID, tool)} {
			ok, err := paths.Match(plain.Replace(pattern), plain.Replace(name))
			if err != nil {
				return false, fault.Newf(fault.InvalidConfig, "%q is no pattern of names; use * and ?, and put a backslash before a bracket", pattern).With("path", fmt.Sprintf("configurations.available_tools[%d]", i))
			}
			if ok {
				return true, nil
			}
		}
	}
	return false, nil
}

// name is the tool that is meant, as its server calls it: by that name, by server/tool, or as a model sees it.
func (s *toolServer) name(in toolInput, pinned []mcp.Tool) (string, error) {
	said := s.cfg.ToolName
	if said == "" {
		said = in.ToolName
	}
	var names []string
	for _, t := range pinned {
		if ok, err := s.cfg.allows(t.Name); err != nil {
			return "", err
		} else if ok {
			names = append(names, t.Name)
		}
	}
	if said == "" {
		return "", node.Missing([]string{"tool_name"}, `no tool is named; set "tool_name" to one of %s`, strings.Join(names, ", ")).With("path", "tool_name")
	}
	plain := strings.TrimPrefix(strings.TrimPrefix(said, s.cfg.ToolPrefix), s.cfg.ServerID+"/")
	for _, t := range pinned {
		if said == t.Name || said == s.cfg.ToolPrefix+mcp.ModelName(t.Server, t.Name) || said == mcp.ModelName(t.Server, t.Name) {
			plain = t.Name
		}
	}
	ok, err := s.cfg.allows(plain)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", fault.Newf(fault.ToolError, "the tool %q is not among available_tools; there are %s", said, strings.Join(names, ", ")).With("path", "tool_name")
	}
	return plain, nil
}

// run calls the tool that is named.
func (s *toolServer) run(ctx context.Context, in toolInput) (node.Outcome, error) {
	pinned, err := s.pool.Pinned(ctx, s.who(), s.cfg.ServerID)
	if e, ok := errors.AsType[*mcp.Error](err); ok && e.Kind == mcp.NotActivated {
		return s.wait(human.PurposeActivation, nil)
	}
	if err != nil {
		return nil, toolFault(err)
	}
	name, err := s.name(in, pinned)
	if err != nil {
		return nil, err
	}
	args := json.RawMessage(s.cfg.FunctionArgs)
	if isNull(args) {
		args = in.FunctionArgs
	}
	if isNull(args) {
		args = json.RawMessage("{}")
	} else if !isObject(args) {
		return nil, fault.New(fault.ToolError, `"function_args" must be an object`).With("path", "function_args")
	}
	s.call.Detail(map[string]any{"tool_name": mcp.ToolID(s.cfg.ServerID, name), "tool_parameters": args})
	agreed, err := s.agreedTo(name, args)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	out, err := s.pool.Call(ctx, s.who(), mcp.Call{
		Server: s.cfg.ServerID, Tool: name, Arguments: args, Silence: s.cfg.silence(), SilenceFrom: "the node's call_timeout_seconds", Limit: s.cfg.limit(),
		Progress: func(p mcp.Progress) { s.call.Emit(map[string]any{"progress": p}) },
		Check: func(now mcp.Tool, v mcp.Verdict) error {
			declareOutputs(s.call, now)
			if err := s.fits(now, args); err != nil {
				return err
			}
			if !agreed && s.held(ctx, v) {
				return &heldCall{v}
			}
			return nil
		},
	})
	if h, ok := errors.AsType[*heldCall](err); ok {
		return s.askCall(name, args, h.verdict)
	}
	if d, ok := errors.AsType[*mcp.Drifted](err); ok {
		if slices.ContainsFunc(d.Changes, func(c mcp.Change) bool { return c.Kind == mcp.Removed }) {
			return nil, fault.Newf(fault.NotFound, "the server %q no longer has the tool %q", d.Server, d.Tool).With("server_id", d.Server).With("tool", d.Tool)
		}
		return s.wait(human.PurposeDrift, d.Changes)
	}
	if err != nil {
		f := toolFault(err)
		if e, ok := errors.AsType[*mcp.Error](err); ok && e.Kind == mcp.UnknownTool {
			var names []string
			for _, t := range pinned {
				names = append(names, t.Name)
			}
			if near := fault.Nearest(name, names); near != "" {
				f.Message += fmt.Sprintf("; did you mean %q?", near)
			}
		}
		return nil, f
	}
	result, err := toolResult(ctx, s.call, out)
	if err != nil {
		return nil, err
	}
	if result, err = fitResult(s.call, result, out); err != nil {
		return nil, err
	}
	raw, err := payload.Encode(toolOutput{Result: result, Success: true, ExecutionTime: time.Since(begun).Milliseconds()}.of(s.cfg.CallID, s.cfg.Context, in))
	if err != nil {
		return nil, fault.New(fault.OutputInvalid, "the tool made a result that JSON cannot hold").WithCause(err)
	}
	return node.Done{"result": raw}, nil
}

// declareOutputs tells which fields of its result the tool declares, if anybody wants to know.
func declareOutputs(call *node.Call, t mcp.Tool) {
	if call.Declare != nil {
		call.Declare(t.Outputs())
	}
}

func (s *toolServer) wait(purpose string, changes []mcp.Change) (node.Outcome, error) {
	wait, err := s.ask(purpose, changes)
	if err != nil {
		return nil, err
	}
	return *wait, nil
}

// fitResult cuts a result that is larger than what a tool may return. The tool has run, so that is no failure.
func fitResult(call *node.Call, result json.RawMessage, out mcp.Output) (json.RawMessage, error) {
	if len(result) <= maxToolResult {
		return result, nil
	}
	const frame = 16 << 10 // files and the names of the fields; there are at most 100 files
	message, _ := fitJSON(out.Message, maxToolResult-frame)
	cut := map[string]any{"message": message, "truncated": true}
	var fields struct {
		Files json.RawMessage `json:"files"`
	}
	if err := json.Unmarshal(result, &fields); err == nil && len(out.Files) > 0 && len(fields.Files) < frame-256 {
		cut["files"] = fields.Files
	}
	call.Log(node.Warn, "the result of the tool was cut", map[string]any{"bytes": len(result), "limit": maxToolResult})
	return payload.Encode(cut)
}

// toolFile is a file of a tool's result: a stored value, or a link that nobody has followed.
type toolFile struct {
	Blob        string `json:"blob,omitempty"`
	Name        string `json:"name"`
	ContentType string `json:"content_type"`
	Size        int64  `json:"size,omitempty"`
	SHA256      string `json:"sha256,omitempty"`
	// Type is image, audio, resource or link.
	Type string `json:"type"`
	URI  string `json:"uri,omitempty"`
}

// toolResult is the output of a tool as an object: its data, always with a message, and what it has sent as files, stored, under
// files. A field of that name that the tool itself has is left as it is when there are no files.
func toolResult(ctx context.Context, call *node.Call, out mcp.Output) (json.RawMessage, error) {
	raw, err := out.Object()
	if err != nil {
		return nil, fault.New(fault.OutputInvalid, "the tool made a result that cannot be read").WithCause(err)
	}
	if len(out.Files) == 0 {
		return raw, nil
	}
	list := make([]toolFile, len(out.Files))
	for i, f := range out.Files {
		if list[i], err = keepToolFile(ctx, call, f); err != nil {
			return nil, err
		}
	}
	kept, err := payload.Encode(list)
	if err != nil {
		return nil, fault.New(fault.OutputInvalid, "the files of the tool cannot be named in its result").WithCause(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fault.New(fault.OutputInvalid, "the tool made a result that cannot be read").WithCause(err)
	}
	fields["files"] = kept
	return payload.Encode(fields)
}

func keepToolFile(ctx context.Context, call *node.Call, f mcp.File) (toolFile, error) {
	name := cleanName(f.Name)
	if name == "" {
		name = f.Sort
	}
	kept := toolFile{Name: name, ContentType: f.MediaType, Type: f.Sort, URI: f.URI}
	if f.Sort == "link" {
		return kept, nil
	}
	if call.Files == nil {
		return toolFile{}, fault.New(fault.Unsupported, "the files of a tool cannot be stored here")
	}
	hash, size, err := call.Files.Keep(ctx, bytes.NewReader(f.Data))
	if err != nil {
		return toolFile{}, err
	}
	kept.Blob, kept.Size, kept.SHA256 = hash, size, hash
	return kept, nil
}

// toolFault is why a tool has no good result, as a user reads it. One of which nobody knows whether it ran has the code outcome_unknown.
func toolFault(err error) *fault.Error {
	if e, ok := errors.AsType[*mcp.Error](err); ok {
		f := e.Fault()
		if e.Kind == mcp.ToolFailed && saysForbidden(e.Message) {
			f.Code = fault.Forbidden
		}
		return f
	}
	if d, ok := errors.AsType[*mcp.Drifted](err); ok {
		return fault.New(fault.Forbidden, d.Error()).With("server_id", d.Server).With("tool", d.Tool).With("kind", "drifted").With("changes", summaries(d.Changes))
	}
	return fault.From(err)
}

func summaries(changes []mcp.Change) []string {
	list := make([]string, len(changes))
	for i, c := range changes {
		list[i] = c.Summary
	}
	return list
}

// planMCPTool: a server is registered by an administrator; a workflow can only name it.
func planMCPTool(p *node.Planning, _ *mcpToolConfig) {
	if p.Has("mcp_server_url") {
		p.Warn(node.ProblemDropped, p.At("mcp_server_url"), "a workflow starts no server; have an administrator register it, set server_id and remove %q", "mcp_server_url")
	}
}
