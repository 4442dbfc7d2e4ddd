package server

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/revisions"
	"tandem/route"
	"tandem/store"
)

// executions registers what can be read of executions and done with them.
func (s *Server) executions() {
	op := route.Tagged("executions")
	get := op(http.MethodGet, "/executions/{id}", "get-execution", "Read an execution with the latest activation of each node")
	get.Middlewares = huma.Middlewares{s.getPlainly}
	one := op(http.MethodGet, "/executions/{id}/activations/{activation...}", "get-activation", "Read one activation, with its input and where that came from")
	one.Description = "The id of an activation has slashes and brackets where it is inside a loop; it may be sent as it is."
	value := op(http.MethodGet, "/executions/{id}/values/{hash}", "get-value", "Read a large value")
	value.Description = "Values over 32 KiB are shown as {\"$blob\": hash, \"size\": bytes} and are read here."
	history := op(http.MethodGet, "/executions/{id}/history", "get-history", "Read what happened, in order, and who decided it")
	history.Description = "One record per activation, and one for whatever an operator did: statuses, input, output, retries, cost, and every question with who was asked, exactly what they were shown, who answered, when and by which means. " +
		"A fork begins with what it shares with its source. The histories of executions that a node has started stand below it."
	actions := op(http.MethodPost, "/executions/{id}/actions", "act-on-execution", "Pause, resume, cancel, retry, skip or fork")
	actions.Description = "What cannot be done in the state the execution is in answers 409 and changes nothing."
	input := op(http.MethodPost, "/executions/{id}/input", "send-input", "Answer a question, or send a signal to a node that waits")
	input.Description = "A question about an unknown outcome takes {\"outcome\": \"done\"|\"not_done\"|\"stop\", \"result\"?}. A node that waits for a signal takes {\"signal\", \"payload\"?}, or the payload alone; a delay takes {\"cancel\": true}. " +
		"A question is for those who are asked it, whatever their role; signals are for editors, operators and approvers."

	remove := op(http.MethodDelete, "/executions/{id}", "delete-execution", "Delete an execution that has ended, with everything that is kept of it")
	remove.Description = "Its journal, snapshot, logs, questions with their answers and messages, keys, working memories, the executions that it started, and what the delivery brought that started it. " +
		"Large values and files that nothing else names follow within minutes, and what is left in free parts of the files is overwritten. It is refused with 409 while it runs, while a question of it is open, and while a fork shares its past. The audit log keeps who deleted it, when and why."
	route.Handle(s.Router, op(http.MethodGet, "/executions", "list-executions", "List executions, the newest first"), route.Readers(), s.listExecutions)
	route.Handle(s.Router, get, route.Readers(), s.getExecution)
	route.Handle(s.Router, op(http.MethodGet, "/executions/{id}/activations", "list-activations", "List the activations in the order they began"), route.Readers(), s.listActivations)
	route.Handle(s.Router, one, route.Readers(), s.getActivation)
	route.Handle(s.Router, history, route.Readers(), s.getHistory)
	route.Handle(s.Router, op(http.MethodGet, "/executions/{id}/context", "get-context", "Read the data of an execution: its three layers"), route.Readers(), s.getContext)
	route.Handle(s.Router, op(http.MethodGet, "/executions/{id}/logs", "list-logs", "Read the lines that nodes wrote"), route.Readers(), s.listLogs)
	route.Handle(s.Router, value, route.Readers(), s.getValue)
	route.Handle(s.Router, actions, route.Operators(), s.actOnExecution)
	route.Handle(s.Router, remove, route.Admins(), s.deleteExecution)
	route.Handle(s.Router, input, route.Readers(), s.sendInput)

	// The document has no wildcards.
	paths := s.Document().Paths
	paths[route.Prefix+"/executions/{id}/activations/{activation}"] = paths[route.Prefix+one.Path]
	delete(paths, route.Prefix+one.Path)
	paths[route.Prefix+value.Path].Get.Responses["200"].Content = map[string]*huma.MediaType{
		"application/json":         {Schema: &huma.Schema{}},
		"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
	}
}

// ExecutionPath names an execution.
type ExecutionPath struct {
	ID string `path:"id" maxLength:"200"`
}

type listExecutionsInput struct {
	route.Paging
	Workflow string   `query:"workflow_id" maxLength:"128"`
	Status   []string `query:"status,explode" doc:"several, or one list with commas: NEW, PENDING, RUNNING, PAUSED, WAITING, WAITING_FOR_HUMAN, SUCCESS, ERROR, CANCELED, TIMEOUT"`
	User     string   `query:"user_id" maxLength:"128" doc:"who started them; me: the caller"`
	After    int64    `query:"started_after" minimum:"0" doc:"Unix milliseconds: those that were started then or later"`
	Before   int64    `query:"started_before" minimum:"0" doc:"Unix milliseconds: those that were started earlier"`
	Older    string   `query:"older_than" maxLength:"200" doc:"an execution: page counts from there, 1 begins with the next older one. Every page is found so in the same time"`
	Newer    string   `query:"newer_than" maxLength:"200" doc:"an execution: page counts from there, 1 ends with the next newer one"`
}

type executionsOutput struct{ Body api.Executions }

func (s *Server) listExecutions(ctx context.Context, p identity.Principal, in *listExecutionsInput) (*executionsOutput, error) {
	statuses, err := readStatuses(route.Listed(in.Status))
	if err != nil {
		return nil, err
	}
	if in.User == "me" {
		in.User = p.User
	}
	if in.After > 0 && in.Before > 0 && in.Before <= in.After {
		return nil, api.WrongField("query.started_before", "it must be later than started_after")
	}
	if in.Older != "" && in.Newer != "" {
		return nil, api.WrongField("query.newer_than", "give it or older_than, not both")
	}
	q := store.ExecutionQuery{WorkflowID: in.Workflow, Statuses: statuses, User: in.User, Since: in.After, Until: in.Before,
		Older: in.Older, Newer: in.Newer, Page: in.StorePage()}
	return s.pageOfExecutions(ctx, p, q, in.Paging)
}

func (s *Server) pageOfExecutions(ctx context.Context, p identity.Principal, q store.ExecutionQuery,
	at route.Paging) (*executionsOutput, error) {
	page, err := s.o.Stores.Executions.List(ctx, p, q)
	if err != nil {
		return nil, err
	}
	out := &executionsOutput{api.Executions{Executions: make([]api.ExecutionSummary, len(page.Executions)), TotalCount: page.Total,
		Page: at.Page, PageSize: at.PageSize}}
	for i := range page.Executions {
		e := &page.Executions[i]
		out.Body.Executions[i] = api.ExecutionSummary{
			ExecutionID: e.ID, WorkflowID: e.WorkflowID, WorkflowName: e.WorkflowName, Status: string(e.Status), StartTime: e.Started,
			EndTime: e.Ended, DurationMS: e.DurationMS,
			TriggerType: e.TriggerType, CreditsConsumed: e.Credits, ErrorSummary: e.Error, Revision: e.Revision,
			ParentExecutionID: e.Parent, UserID: e.User, TokenMadeBy: e.TokenMadeBy, ConversationID: e.Conversation,
			CreatedAt: e.Created,
		}
	}
	return out, nil
}

// allStatuses names every status of an execution.
func allStatuses() string {
	all := engine.Statuses()
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = string(s)
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// readStatuses reads statuses in any letter case and both spellings.
func readStatuses(names []string) ([]engine.Status, error) {
	statuses := make([]engine.Status, len(names))
	for i, name := range names {
		status := engine.Status(strings.ToUpper(name))
		if status == "CANCELLED" {
			status = engine.StatusCanceled
		}
		if !slices.Contains(engine.Statuses(), status) {
			return nil, api.WrongField("query.status", "%q is not a status of an execution; there are %s", name, allStatuses())
		}
		statuses[i] = status
	}
	return statuses, nil
}

type getExecutionInput struct {
	ExecutionPath
	Include []string `query:"include" enum:"workflow" doc:"workflow: the definition that the execution is pinned to"`
}

type executionOutput struct{ Body api.GetExecution }

func (s *Server) getExecution(ctx context.Context, p identity.Principal, in *getExecutionInput) (*executionOutput, error) {
	r, err := s.stories.ReadExecution(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	about, err := s.stories.AboutWorkflow(ctx, p, r.Summary.WorkflowID)
	if err != nil {
		return nil, err
	}
	out := &executionOutput{}
	if out.Body, err = r.TellWhole(ctx, about); err != nil {
		return nil, err
	}
	if len(in.Include) > 0 {
		hash, _ := revisions.SplitHash(r.Summary.RevisionHash)
		revision, err := s.o.Stores.Workflows.RevisionByHash(ctx, p, r.Summary.WorkflowID, hash)
		if err != nil {
			return nil, err
		}
		out.Body.WorkflowDefinition = revision.Definition
	}
	return out, nil
}

type listActivationsInput struct {
	ExecutionPath
	Node  string `query:"node_id"`
	After string `query:"after" doc:"next of the part before"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type activationsOutput struct{ Body api.Activations }

func (s *Server) listActivations(ctx context.Context, p identity.Principal, in *listActivationsInput) (*activationsOutput, error) {
	after := 0
	if in.After != "" {
		var err error
		if after, err = strconv.Atoi(in.After); err != nil || after < 0 {
			return nil, api.WrongField("query.after", "%q is not what \"next\" of a part says", in.After)
		}
	}
	r, err := s.stories.OpenExecution(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	out, err := r.Activations(ctx, in.Node, after, in.Limit)
	return &activationsOutput{out}, err
}

type getActivationInput struct {
	ExecutionPath
	Activation string `path:"activation"`
}

type activationOutput struct{ Body api.NodeExecution }

func (s *Server) getActivation(ctx context.Context, p identity.Principal, in *getActivationInput) (*activationOutput, error) {
	r, err := s.stories.OpenExecution(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	out, err := r.Activation(ctx, engine.ActivationID(in.Activation))
	return &activationOutput{out}, err
}

type historyInput struct {
	ExecutionPath
	After string `query:"after" doc:"next of the part before"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type historyOutput struct{ Body api.History }

func (s *Server) getHistory(ctx context.Context, p identity.Principal, in *historyInput) (*historyOutput, error) {
	after := 0
	if in.After != "" {
		var err error
		if after, err = strconv.Atoi(in.After); err != nil || after < 0 {
			return nil, api.WrongField("query.after", "%q is not what \"next\" of a part says", in.After)
		}
	}
	h, err := s.stories.History(ctx, p, in.ID, after, in.Limit)
	if err != nil {
		return nil, err
	}
	return &historyOutput{*h}, nil
}

type getContextInput struct {
	ExecutionPath
	Scope string `query:"scope" doc:"the path of an iteration that is open, \"each[3]\" for instance; left out, it is the top level"`
}

type contextOutput struct{ Body api.Context }

func (s *Server) getContext(ctx context.Context, p identity.Principal, in *getContextInput) (*contextOutput, error) {
	r, err := s.stories.OpenExecution(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	out, err := r.Context(ctx, in.Scope)
	return &contextOutput{out}, err
}

type listLogsInput struct {
	ExecutionPath
	Level      string `query:"level" enum:"DEBUG,INFO,WARN,ERROR" doc:"lines of this level and above"`
	Node       string `query:"node_id" doc:"lines of this node and of the steps inside it"`
	Activation string `query:"activation_id"`
	After      int64  `query:"after" minimum:"0" doc:"the id of the last line seen"`
	Limit      int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type logsOutput struct{ Body api.Logs }

func (s *Server) listLogs(ctx context.Context, p identity.Principal, in *listLogsInput) (*logsOutput, error) {
	if _, err := s.o.Stores.Executions.Get(ctx, p, in.ID); err != nil {
		return nil, err
	}
	q := store.LogQuery{Execution: in.ID, Activation: in.Activation, NodeID: in.Node, After: in.After, Limit: in.Limit}
	if level, ok := logLevels()[in.Level]; ok {
		q.MinLevel = &level
	}
	page, err := s.o.Stores.Logs.Lines(ctx, p, q)
	if err != nil {
		return nil, err
	}
	out := &logsOutput{api.Logs{Lines: make([]api.LogEntry, len(page.Lines)), Dropped: page.Dropped}}
	for i, line := range page.Lines {
		out.Body.Lines[i] = api.LogEntry{
			ID: line.ID, Timestamp: line.Time, Level: levelName(line.Level), Message: line.Message, NodeID: line.NodeID,
			InnerStep:    gjson.GetBytes(line.Context, store.LogInnerStep).Str,
			ActivationID: line.Activation, Context: line.Context,
		}
	}
	if page.More && len(page.Lines) > 0 {
		out.Body.Next = page.Lines[len(page.Lines)-1].ID
	}
	return out, nil
}

func logLevels() map[string]store.Level {
	return map[string]store.Level{"DEBUG": store.LevelDebug, "INFO": store.LevelInfo, "WARN": store.LevelWarn, "ERROR": store.LevelError}
}

func levelName(l store.Level) string {
	switch {
	case l >= store.LevelError:
		return "ERROR"
	case l >= store.LevelWarn:
		return "WARN"
	case l >= store.LevelInfo:
		return "INFO"
	}
	return "DEBUG"
}

type getValueInput struct {
	ExecutionPath
	Hash        string `path:"hash"`
	IfNoneMatch string `header:"If-None-Match"`
}

type valueOutput struct {
	Status int
	Type   string `header:"Content-Type"`
	// A value never changes under its name. Whatever it is, a browser must not show it as a page of this server.
	ETag        string `header:"ETag"`
	Cache       string `header:"Cache-Control"`
	Disposition string `header:"Content-Disposition"`
	Sniff       string `header:"X-Content-Type-Options"`
	Policy      string `header:"Content-Security-Policy"`
	Length      string `header:"Content-Length"`
	Body        func(huma.Context)
}

// blobHash is the name of a large value.
var blobHash = regexp.MustCompile(`^[0-9a-f]{64}$`) // read-only

func (s *Server) getValue(ctx context.Context, p identity.Principal, in *getValueInput) (*valueOutput, error) {
	if _, err := s.o.Stores.Executions.Get(ctx, p, in.ID); err != nil {
		return nil, err
	}
	if !blobHash.MatchString(in.Hash) {
		return nil, fault.Newf(fault.NotFound, "%q is not the name of a value; it has 64 hexadecimal digits", in.Hash)
	}
	out := &valueOutput{
		Status: http.StatusOK, ETag: `"` + in.Hash + `"`, Cache: "private, max-age=31536000, immutable", Disposition: `attachment; filename="` + in.Hash[:16] + `"`,
		Sniff: "nosniff", Policy: "default-src 'none'; sandbox",
	}
	content, blob, err := s.o.Stores.Blobs.Get(ctx, p, in.Hash)
	if err != nil {
		return nil, err
	}
	for tag := range strings.SplitSeq(in.IfNoneMatch, ",") {
		if strings.TrimPrefix(strings.TrimSpace(tag), "W/") == out.ETag {
			out.Status, out.Body = http.StatusNotModified, func(c huma.Context) { c.SetStatus(http.StatusNotModified) }
			return out, content.Close()
		}
	}
	reader := bufio.NewReader(content)
	out.Type, out.Length = "application/octet-stream", strconv.FormatInt(blob.Size, 10)
	if first, err := reader.Peek(1); err == nil && strings.ContainsRune(`{["`, rune(first[0])) {
		out.Type = "application/json" // values of journals are JSON; files of nodes may be anything
	}
	out.Body = func(c huma.Context) {
		c.SetStatus(http.StatusOK)
		_, err := io.Copy(c.BodyWriter(), reader)
		if cerr := content.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			s.Log.DebugContext(ctx, "a value was not sent to its end", "hash", in.Hash, "error", err)
		}
	}
	return out, nil
}
