package toolset

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

	"tandem/builtin/fileref"
	"tandem/engine"
	"tandem/fault"
	"tandem/human/form"
	"tandem/identity"
	"tandem/mcp"
	"tandem/node"
	"tandem/node/slot"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// ServerConfig is what a node is configured with that offers the tools of a server.
type ServerConfig struct {
	ServerID       string          `json:"server_id" names:"tool_server" required:"true" doc:"The registered tool server." zh:"已登记的工具服务器。"`
	AvailableTools []string        `json:"available_tools" doc:"The tools that are offered; without them all." zh:"提供哪些工具；省略时为全部。"`
	ToolPrefix     string          `json:"tool_prefix" doc:"What stands before the names of the tools." zh:"工具名称的前缀。"`
	Approval       string          `json:"approval" enum:"inherit|never|always" doc:"Whether a person is asked before a tool is used; inherit leaves it to the agent." zh:"使用工具前是否询问人员；inherit 由智能体决定。"`
	ToolName       string          `json:"tool_name" doc:"The tool that a node runs which stands alone." zh:"独立节点运行的工具。"`
	FunctionArgs   node.Object     `json:"function_args" doc:"The arguments of the tool, for a node that stands alone. One that is not named here is the field of the input with its name." zh:"独立节点调用工具的参数；此处未列出的参数取输入中的同名字段。"`
	Context        json.RawMessage `json:"context" doc:"Anything that comes back with the result." zh:"随结果一并返回的任意内容。"`
	CallID         string          `json:"call_id" doc:"A name of the call that comes back with the result." zh:"随结果一并返回的调用编号。"`
	CallTimeout    int64           `json:"call_timeout_seconds" range:"1..600" doc:"How long a server may be silent during a call, in seconds." zh:"调用期间服务器最长无响应时间（秒）。"`
	// ServerURL is what older files have; it starts nothing.
	ServerURL json.RawMessage `json:"mcp_server_url" doc:"What older files have; it is ignored." zh:"旧文件中的字段，已忽略。"`
}

func (c *ServerConfig) Defaults() { c.Approval, c.CallTimeout = "inherit", 60 }

// silence is how long a call may be without a word of the server, limit how long it may take in all, whatever the progress.
func (c *ServerConfig) silence() time.Duration { return time.Duration(c.CallTimeout) * time.Second }
func (c *ServerConfig) limit() time.Duration   { return max(10*time.Minute, 10*c.silence()) }

// connecting is what a call may take besides: the server may have to be started first.
const connecting = 2 * time.Minute

// mcpTool gives a model the tools of a registered server, as the user of the execution has accepted them. What the user has not
// accepted is asked for before it is used: the server itself, or how a tool of it has changed.
func mcpTool(pool *mcp.Pool) node.Kind {
	k := node.Raw(
		node.About{
			Name: "TOOL.MCP_TOOL", Title: node.Says("MCP tools", "MCP 工具"),
			Description: node.Says("Uses the tools of a registered MCP server.", "使用已登记的 MCP 服务器的工具。"),
			Effect:      workflow.Once,
			Older:       []string{"TOOL.SLACK_MCP_TOOL", "TOOL.DISCORD_MCP_TOOL", "TOOL.NOTION_MCP_TOOL", "TOOL.GOOGLE_CALENDAR_MCP_TOOL", "TOOL.FIRECRAWL_MCP_TOOL"},
			Keys:        Keys(),
			Needs:       node.Needs{ToolsOf: toolsNamed, Also: []node.Text{node.Says("A tool server that is stored and activated.", "已保存并激活的工具服务器。")}},
			Examples: []node.Example{
				{
					Shows:  node.Says("Calls a tool of the server \"weather\".", "调用服务器 weather 的工具。"),
					Config: `{"server_id": "weather"}`,
					Input:  `{"tool_name": "forecast", "function_args": {"city": "Bern"}}`,
					Output: `{"result": {"result": {"degrees": 21, "message": "{\"degrees\":21}"}, "success": true, "error_message": "", "execution_time": "…", "cached": false, "degrees": 21, "message": "{\"degrees\":21}"}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg ServerConfig, in Input) (node.Outcome, error) {
			s := Server{Pool: pool, Call: call, Config: &cfg}
			if err := s.Settle(ctx); err != nil {
				return nil, err
			}
			return s.Run(ctx, in)
		}, planMCPTool)
	k.OutputSchema = node.SchemaOf[Output](k.About.Name)
	k.Ready = func(ctx context.Context, call *node.Call) (*node.Wait, error) {
		cfg, err := node.Configuration[ServerConfig](call.Config)
		if err != nil {
			return nil, err
		}
		s := Server{Pool: pool, Call: call, Config: &cfg}
		if err := s.Settle(ctx); err != nil {
			return nil, err
		}
		return s.Ready(ctx)
	}
	k.Wants = func(ctx context.Context, call *node.Call) (json.RawMessage, error) {
		cfg, err := node.Configuration[ServerConfig](call.Config)
		if err != nil {
			return nil, err
		}
		s := Server{Pool: pool, Call: call, Config: &cfg}
		return s.wants(ctx)
	}
	k.Tools = func(ctx context.Context, call *node.Call) ([]node.Tool, error) {
		cfg, err := node.Configuration[ServerConfig](call.Config)
		if err != nil {
			return nil, err
		}
		s := Server{Pool: pool, Call: call, Config: &cfg}
		return s.Offer(ctx)
	}
	return k
}

// Server is a server as one run uses it.
type Server struct {
	Pool   *mcp.Pool
	Call   *node.Call
	Config *ServerConfig
	// agreed is the call that a person has agreed to in answer to this run's question; changed: they have accepted changes of tools.
	agreed  string
	changed bool
}

func (s *Server) who() identity.Principal { return Caller(s.Call) }

// mcpMemo is what a question was about. What is accepted is what was shown, and nothing that came later.
type mcpMemo struct {
	Purpose string       `json:"purpose"`
	Node    string       `json:"node"`
	Server  string       `json:"server"`
	Changes []mcp.Change `json:"changes,omitempty"`
	// Hash is that of a call that was asked about.
	Hash string `json:"hash,omitempty"`
}

// Settle does what a person has answered, if this run follows an answer to this node. Doing it again changes nothing.
func (s *Server) Settle(ctx context.Context) error {
	wake := s.Call.Wake
	if wake == nil || len(s.Call.Memo) == 0 {
		return nil
	}
	var memo mcpMemo
	if err := json.Unmarshal(s.Call.Memo, &memo); err != nil || memo.Node != s.Call.NodeID || memo.Server != s.Config.ServerID {
		return nil // the question of another node
	}
	if memo.Purpose == form.PurposeToolApproval {
		if wake.Outcome != engine.AskDone || !Approves(wake.Payload) {
			return fault.Say(fault.Forbidden, text.Of("a person has refused this call of a tool of server %q", memo.Server)).With("server_id", memo.Server)
		}
		s.agreed = memo.Hash
		return nil
	}
	if wake.Outcome != engine.AskDone || !Accepts(wake.Payload) {
		refused := fault.Say(fault.Forbidden, text.Of("the tool server %q is not used: nobody has accepted that", memo.Server))
		if memo.Purpose == form.PurposeDrift {
			refused = fault.Say(fault.Forbidden, text.Of("the changed tools of server %q are not used: nobody has accepted the difference (%s)", memo.Server, strings.Join(summaries(memo.Changes), "; ")))
		}
		return refused.With("server_id", memo.Server)
	}
	by, err := s.Pool.AnsweredBy(ctx, s.who(), wake.Person, s.Call.ExecutionID)
	if err != nil {
		return err
	}
	if memo.Purpose == form.PurposeDrift {
		s.changed = true
		if _, err := s.Pool.Accept(ctx, s.who(), memo.Server, by, memo.Changes); err != nil {
			return Fault(err)
		}
		return nil
	}
	if _, err := s.Pool.Pinned(ctx, s.who(), memo.Server); err == nil {
		return nil // somebody was faster, or this run is a second one
	}
	if _, err := s.Pool.Activate(ctx, s.who(), memo.Server, mcp.Activation{By: by.By, Execution: by.Execution}); err != nil {
		return Fault(err)
	}
	return nil
}

// Accepts reads an answer. Only a plain yes is one.
func Accepts(raw json.RawMessage) bool {
	var answer struct {
		Accept json.RawMessage `json:"accept"`
	}
	return json.Unmarshal(raw, &answer) == nil && string(answer.Accept) == "true"
}

// ask asks a person: whether the server may be used, or whether its tools may be as they are now.
func (s *Server) ask(purpose string, changes []mcp.Change) (*node.Wait, error) {
	language, server := s.Call.Speaks(""), s.Config.ServerID
	title := text.Of("Activate the tool server %s?", server)
	description := text.Of("The workflow wants to use its tools, and the user who started it has not activated it. Accepting pins the tools as they are now.")
	key := purpose + ":" + server
	if purpose == form.PurposeDrift {
		title = text.Of("Tools of server %s have changed. Accept that?", server)
		description = text.As(strings.Join(summaries(changes), "; "))
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
	asked := map[string]any{"interaction_type": form.Approval, "content": content}
	form.Say(asked, language, form.TitleText, title)
	form.Say(asked, language, form.DescriptionText, description)
	request, err := payload.Encode(asked)
	if err != nil {
		return nil, err
	}
	memo, err := payload.Encode(mcpMemo{Purpose: purpose, Node: s.Call.NodeID, Server: server, Changes: changes})
	if err != nil {
		return nil, err
	}
	return &node.Wait{Ask: &node.Question{Purpose: purpose, Request: request, Key: key}, Memo: memo}, nil
}

// Ready says what a person has to decide before the tools can be offered.
func (s *Server) Ready(ctx context.Context) (*node.Wait, error) {
	changes, err := s.Pool.Check(ctx, s.who(), s.Config.ServerID)
	if e, ok := errors.AsType[*mcp.Error](err); ok && e.Kind == mcp.NotActivated {
		return s.ask(form.PurposeActivation, nil)
	}
	if err != nil {
		return nil, nil // offer says what is wrong, or does without
	}
	var changed []mcp.Change
	for _, c := range changes {
		if ok, err := s.Config.allows(c.Tool); err != nil {
			return nil, err
		} else if ok && c.Kind == mcp.Changed {
			changed = append(changed, c)
		}
	}
	if len(changed) == 0 {
		return nil, nil
	}
	return s.ask(form.PurposeDrift, changed)
}

// Offer lists the tools that the user has accepted. Those that are forbidden, and those that the server no longer has, are withheld.
func (s *Server) Offer(ctx context.Context) ([]node.Tool, error) {
	pinned, err := s.Pool.Pinned(ctx, s.who(), s.Config.ServerID)
	if err != nil {
		return nil, Fault(err)
	}
	changes, err := s.Pool.Check(ctx, s.who(), s.Config.ServerID)
	if err != nil {
		// What was accepted is known. A call says the same again, to the model, which can do without.
		s.Call.Log(node.Warn, "the tool server cannot be reached; its tools are offered as they were accepted", map[string]any{"server": s.Config.ServerID, "error": Fault(err).Message})
	}
	if err := s.knownTools(pinned, changes); err != nil {
		return nil, err
	}
	kind := map[string]mcp.ChangeKind{}
	for _, c := range changes {
		if kind[c.Tool] = c.Kind; c.Kind == mcp.Added {
			s.Call.Log(node.Notice, "a tool is new and not offered until somebody accepts it", map[string]any{"server": s.Config.ServerID, "tool": c.Tool})
		}
	}
	standings, err := s.Pool.Standings(ctx, s.who(), s.Config.ServerID, pinned)
	if err != nil {
		return nil, err
	}
	var list []node.Tool
	for _, t := range pinned {
		ok, err := s.Config.allows(t.Name)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		also := []string{t.Name, mcp.ToolID(t.Server, t.Name), mcp.ModelName(t.Server, t.Name)}
		if kind[t.Name] == mcp.Removed {
			list = append(list, node.Tool{Name: t.Name, Also: also, Withheld: true})
			continue
		}
		standing := standings[t.Name]
		if standing.Decision == mcp.Refused && !standing.ByArgument {
			s.Call.Log(node.Notice, "a tool is not offered: a policy says never", map[string]any{"server": s.Config.ServerID, "tool": t.Name, "set_by": standing.By})
			list = append(list, node.Tool{Name: t.Name, Also: also, Withheld: true})
			continue
		}
		policy, err := payload.Encode(policyOf(t, standing))
		if err != nil {
			return nil, err
		}
		list = append(list, node.Tool{
			Policy: policy, Also: also,
			Name: s.Config.ToolPrefix + mcp.ModelName(t.Server, t.Name), Description: t.Description, Parameters: t.InputSchema,
			Effect: mcp.Effect(t), Approval: s.Config.Approval,
			TimeoutMS: (s.Config.limit() + connecting).Milliseconds(),
		})
	}
	return list, nil
}

// knownTools refuses available_tools that name a tool that the server never had: a model would do without it, and nobody would
// notice. A pattern may find none.
func (s *Server) knownTools(pinned []mcp.Tool, changes []mcp.Change) error {
	var names []string
	for _, t := range pinned {
		names = append(names, t.Name)
	}
	for _, c := range changes { // one that is new waits for somebody to accept it
		names = append(names, c.Tool)
	}
	for i, wanted := range s.Config.AvailableTools {
		one := ServerConfig{ServerID: s.Config.ServerID, AvailableTools: []string{wanted}}
		if isPattern(wanted) ||
			slices.ContainsFunc(names, func(name string) bool { ok, err := one.allows(name); return ok && err == nil }) {
			continue
		}
		hint := "; there are " + strings.Join(names, ", ")
		if near := fault.Nearest(strings.TrimPrefix(wanted, s.Config.ServerID+"/"), names); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		return fault.Newf(fault.InvalidConfig, `"available_tools" names %q, and the server %q has no such tool%s`, wanted, s.Config.ServerID, hint).With("path", fmt.Sprintf("configurations.available_tools[%d]", i))
	}
	return nil
}

// isPattern says that a name stands for several.
func isPattern(name string) bool { return strings.ContainsAny(name, `*?[\`) }

// allows says whether available_tools lets a tool be used. Its patterns are of the tools' names, or of server/tool.
func (c *ServerConfig) allows(tool string) (bool, error) {
	if len(c.AvailableTools) == 0 {
		return true, nil
	}
	plain := strings.NewReplacer("/", "\x00") // to a pattern, a name is one piece
	for i, pattern := range c.AvailableTools {
		for _, name := range []string{tool, mcp.ToolID(c.ServerID, tool), mcp.ModelName(c.ServerID, tool)} {
			ok, err := paths.Match(plain.Replace(pattern), plain.Replace(name))
			if err != nil {
				return false, fault.Newf(fault.InvalidConfig, "%q is not a pattern of names; use * and ?, and put a backslash before a bracket", pattern).With("path", fmt.Sprintf("configurations.available_tools[%d]", i))
			}
			if ok {
				return true, nil
			}
		}
	}
	return false, nil
}

// name is the tool that is meant, as its server calls it: by that name, by server/tool, or as a model sees it.
func (s *Server) name(in Input, pinned []mcp.Tool) (string, error) {
	said := s.Config.ToolName
	if said == "" {
		said = in.ToolName
	}
	var names []string
	for _, t := range pinned {
		if ok, err := s.Config.allows(t.Name); err != nil {
			return "", err
		} else if ok {
			names = append(names, t.Name)
		}
	}
	if said == "" {
		return "", slot.Missing([]string{"tool_name"}, `no tool is named; set "tool_name" to one of %s`, strings.Join(names, ", ")).With("path", "tool_name")
	}
	plain := strings.TrimPrefix(strings.TrimPrefix(said, s.Config.ToolPrefix), s.Config.ServerID+"/")
	for _, t := range pinned {
		if said == t.Name || said == s.Config.ToolPrefix+mcp.ModelName(t.Server, t.Name) || said == mcp.ModelName(t.Server, t.Name) {
			plain = t.Name
		}
	}
	ok, err := s.Config.allows(plain)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", fault.Newf(fault.ToolError, "the tool %q is not among available_tools; there are %s", said, strings.Join(names, ", ")).With("path", "tool_name")
	}
	return plain, nil
}

// Run calls the tool that is named.
func (s *Server) Run(ctx context.Context, in Input) (node.Outcome, error) {
	pinned, err := s.Pool.Pinned(ctx, s.who(), s.Config.ServerID)
	if e, ok := errors.AsType[*mcp.Error](err); ok && e.Kind == mcp.NotActivated {
		return s.wait(form.PurposeActivation, nil)
	}
	if err != nil {
		return nil, Fault(err)
	}
	name, err := s.name(in, pinned)
	if err != nil {
		return nil, err
	}
	args, err := s.arguments(ctx, in, toolOf(pinned, name))
	if err != nil {
		return nil, err
	}
	s.Call.Detail(map[string]any{"tool_name": mcp.ToolID(s.Config.ServerID, name), "tool_parameters": args})
	agreed, err := s.agreedTo(name, args)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	out, err := s.Pool.Call(ctx, s.who(), mcp.Call{
		Server: s.Config.ServerID, Tool: name, Arguments: args, Silence: s.Config.silence(), SilenceFrom: "the node's call_timeout_seconds", Limit: s.Config.limit(),
		Progress: func(p mcp.Progress) { s.Call.Emit(map[string]any{"progress": p}) },
		Check: func(now mcp.Tool, v mcp.Verdict) error {
			DeclareOutputs(s.Call, now)
			if err := s.fits(ctx, now, args); err != nil {
				return err
			}
			if !agreed && s.held(ctx, v) {
				return &HeldCall{v}
			}
			return nil
		},
	})
	if h, ok := errors.AsType[*HeldCall](err); ok {
		return s.askCall(name, args, h.Verdict)
	}
	if d, ok := errors.AsType[*mcp.Drifted](err); ok {
		if slices.ContainsFunc(d.Changes, func(c mcp.Change) bool { return c.Kind == mcp.Removed }) {
			return nil, fault.Newf(fault.NotFound, "the server %q no longer has the tool %q", d.Server, d.Tool).With("server_id", d.Server).With("tool", d.Tool)
		}
		return s.wait(form.PurposeDrift, d.Changes)
	}
	if err != nil {
		f := Fault(err)
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
	result, err := ServerResult(ctx, s.Call, out)
	if err != nil {
		return nil, err
	}
	if result, err = fitResult(s.Call, result, out); err != nil {
		return nil, err
	}
	raw, err := payload.Encode(Output{Result: result, Success: true,
		ExecutionTime: time.Since(begun).Milliseconds()}.of(s.Config.CallID, s.Config.Context, in))
	if err != nil {
		return nil, fault.New(fault.OutputInvalid, "the tool made a result that JSON cannot hold").WithCause(err)
	}
	return node.Done{"result": raw}, nil
}

// DeclareOutputs tells which fields of its result the tool declares, if anybody wants to know.
func DeclareOutputs(call *node.Call, t mcp.Tool) {
	if call.Declare != nil {
		call.Declare(t.Outputs())
	}
}

func (s *Server) wait(purpose string, changes []mcp.Change) (node.Outcome, error) {
	wait, err := s.ask(purpose, changes)
	if err != nil {
		return nil, err
	}
	return *wait, nil
}

// fitResult cuts a result that is larger than what a tool may return. The tool has run, so that is not a failure.
func fitResult(call *node.Call, result json.RawMessage, out mcp.Output) (json.RawMessage, error) {
	if len(result) <= MaxResult {
		return result, nil
	}
	const frame = 16 << 10 // files and the names of the fields; there are at most 100 files
	message, _ := FitJSON(out.Message, MaxResult-frame)
	cut := map[string]any{"message": message, "truncated": true}
	var fields struct {
		Files json.RawMessage `json:"files"`
	}
	if err := json.Unmarshal(result, &fields); err == nil && len(out.Files) > 0 && len(fields.Files) < frame-256 {
		cut["files"] = fields.Files
	}
	call.Log(node.Warn, "the result of the tool was cut", map[string]any{"bytes": len(result), "limit": MaxResult})
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

// ServerResult is the output of a tool as an object: its data, always with a message, and what it has sent as files, stored, under
// files. A field of that name that the tool itself has is left as it is when there are no files.
func ServerResult(ctx context.Context, call *node.Call, out mcp.Output) (json.RawMessage, error) {
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
	return payload.WithField(raw, "files", kept), nil
}

func keepToolFile(ctx context.Context, call *node.Call, f mcp.File) (toolFile, error) {
	name := fileref.CleanName(f.Name)
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

// Fault is why a tool has no good result, as a user reads it. One of which nobody knows whether it ran has the code outcome_unknown.
func Fault(err error) *fault.Error {
	if e, ok := errors.AsType[*mcp.Error](err); ok {
		f := e.Fault()
		if e.Kind == mcp.ToolFailed && SaysForbidden(e.Message.String()) {
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
func planMCPTool(p *node.Planning, _ *ServerConfig) {
	p.Drops = p.Value("function_args").IsObject() && !p.Templated()
	if p.Has("mcp_server_url") {
		p.Warn(node.ProblemDropped, p.At("mcp_server_url"), "a workflow starts no server; have an administrator register it, set server_id and remove %q", "mcp_server_url")
	}
}

// Has refuses names of tools that the server does not have. A pattern may find none.
func (s *Server) Has(ctx context.Context, names []string) error {
	pinned, err := s.Pool.Pinned(ctx, s.who(), s.Config.ServerID)
	if err != nil {
		return Fault(err)
	}
	var known []string
	for _, t := range pinned {
		known = append(known, t.Name)
	}
	for _, name := range names {
		if isPattern(name) || slices.Contains(known, name) {
			continue
		}
		hint := "; there are " + strings.Join(known, ", ")
		if near := fault.Nearest(name, known); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", mcp.ToolID(s.Config.ServerID, near))
		}
		return fault.Newf(fault.InvalidConfig, `"tools" names %q, and the server has no such tool that was accepted%s`, mcp.ToolID(s.Config.ServerID, name), hint).With("path", "configurations.tools")
	}
	return nil
}
