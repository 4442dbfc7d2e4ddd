package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// clients is the directory of clients of the Model Context Protocol that others wrote.
var clients = sync.OnceValues(func() (string, error) {
	out, err := exec.Command(filepath.Join("..", "..", "scripts", "npm_packages.sh"), "gateway/testdata/client").Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = errors.New(strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
})

// driver is such a client in a process of its own; see gateway/testdata/client/drive.mjs.
type driver struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
}

func drive(t *testing.T) *driver {
	t.Helper()
	dir, err := clients()
	if err != nil {
		t.Fatalf("the clients that others wrote cannot be had: %v; install Node 20 or newer with npm (Debian: apt-get install nodejs npm)", err)
	}
	cmd := exec.Command("node", filepath.Join("..", "..", "gateway", "testdata", "client", "drive.mjs"))
	cmd.Env, cmd.Stderr, cmd.WaitDelay = append(os.Environ(), "CLIENT_DIR="+dir), os.Stderr, time.Minute
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &driver{t: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			t.Errorf("the client's process: %v", err)
		}
	})
	return d
}

// do has something done and reads the result into a value.
func (d *driver) do(command map[string]any, into any) {
	d.t.Helper()
	line, err := json.Marshal(command)
	if err == nil {
		_, err = d.in.Write(append(line, '\n'))
	}
	if err != nil {
		d.t.Fatal(err)
	}
	answer, err := d.out.ReadBytes('\n')
	if err != nil {
		d.t.Fatalf("%s: %v", line, err)
	}
	var said struct {
		OK    json.RawMessage `json:"ok"`
		Error string          `json:"error"`
	}
	if err := json.Unmarshal(answer, &said); err != nil || said.Error != "" {
		d.t.Fatalf("%s: %s %v", line, answer, err)
	}
	if into != nil {
		if err := json.Unmarshal(said.OK, into); err != nil {
			d.t.Fatalf("%s: %s: %v", line, answer, err)
		}
	}
}

// toolCall is what became of a call of a tool.
type toolCall struct {
	Result struct {
		IsError    bool `json:"isError"`
		Structured struct {
			ExecutionID string                     `json:"execution_id"`
			Status      string                     `json:"status"`
			Outputs     map[string]json.RawMessage `json:"outputs"`
			Resume      string                     `json:"resume"`
			Questions   []struct {
				ID string `json:"interaction_id"`
			} `json:"questions"`
			Error struct {
				Code string `json:"error_code"`
			} `json:"error"`
		} `json:"structuredContent"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"result"`
	Progress []struct {
		Message string `json:"message"`
	} `json:"progress"`
	Asked []struct {
		Message string `json:"message"`
	} `json:"asked"`
}

func (d *driver) call(name string, arguments map[string]any) toolCall {
	d.t.Helper()
	var c toolCall
	d.do(map[string]any{"do": "call", "name": name, "arguments": arguments, "progress": true}, &c)
	return c
}

// tandem runs the command.
func tandem(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "tandem", args...).CombinedOutput(); err != nil {
		t.Fatalf("tandem %q: %v\n%s", args, err, out)
	}
}

// Clients that others wrote use Tandem as an MCP server, over HTTP and as a process of their own, in the version of the protocol with
// sessions and in the one without.
func TestMCPServe(t *testing.T) {
	t.Parallel()
	if _, err := clients(); err != nil {
		t.Fatal(err)
	}
	examples := filepath.Join("..", "..", "examples")
	server := exec.CommandContext(t.Context(), "tandem", "serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data"), "--workflows", examples)
	server, said := serving(t, server)
	url, token := printed(t, said, `http://127\.0\.0\.1:[0-9]+`), printed(t, said, `tdm_[A-Za-z0-9_-]{43}`)
	tandem(t, "workflows", "deploy", "human_approval", "--server", url, "--token", token)
	data := filepath.Join(t.TempDir(), "data")
	tandem(t, "workflows", "apply", filepath.Join(examples, "human_approval.yaml"), "--data", data)
	tandem(t, "workflows", "deploy", "human_approval", "--data", data)

	http := map[string]any{"url": url + "/mcp", "headers": map[string]any{"Authorization": "Bearer " + token}}
	stdio := map[string]any{"stdio": map[string]any{"command": "tandem", "args": []string{"mcp"}, "env": map[string]any{"TANDEM_SERVER": url, "TANDEM_TOKEN": token}}}
	local := map[string]any{"stdio": map[string]any{"command": "tandem", "args": []string{"mcp", "--data", data}}}
	const sessions, none = "2025-11-25", "2026-07-28"
	t.Run("Clients", func(t *testing.T) {
		for _, c := range []struct {
			name    string
			sdk     int
			mode    string
			way     map[string]any
			version string
		}{
			{"V1/HTTP", 1, "", http, sessions}, {"V1/Stdio", 1, "", stdio, ""}, {"V2/HTTP", 2, "auto", http, none}, {"V2/Stdio", 2, "auto", stdio, none},
			{"V2WithSessions/HTTP", 2, "legacy", http, sessions},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				useTandem(t, c.sdk, c.mode, c.way, c.version)
			})
		}
		t.Run("DataDirectory", func(t *testing.T) { // one after the other: a process has it to itself
			t.Parallel()
			useTandem(t, 1, "", local, "")
			useTandem(t, 2, "auto", local, none)
		})
	})
	t.Run("ListChanged", func(t *testing.T) {
		var all []*driver
		for _, c := range []map[string]any{{"sdk": 1}, {"sdk": 2}} {
			for _, way := range []map[string]any{http, stdio} {
				d := drive(t)
				command := map[string]any{"do": "connect", "sdk": c["sdk"]}
				for name, value := range way {
					command[name] = value
				}
				d.do(command, nil)
				d.do(map[string]any{"do": "list"}, nil)
				all = append(all, d)
			}
		}
		tandem(t, "workflows", "deploy", "human_form", "--server", url, "--token", token)
		for _, d := range all {
			d.do(map[string]any{"do": "changed", "count": 1}, nil)
			d.do(map[string]any{"do": "close"}, nil)
		}
	})
	stop(t, server, syscall.SIGTERM)
}

// useTandem does with a client what people do with it.
func useTandem(t *testing.T, sdk int, mode string, way map[string]any, version string) {
	t.Helper()
	d := drive(t)
	command := map[string]any{"do": "connect", "sdk": sdk, "mode": mode, "elicit": "form"}
	for name, value := range way {
		command[name] = value
	}
	var connected struct{ Version string }
	if d.do(command, &connected); connected.Version != version {
		t.Errorf("it speaks %q, want %q", connected.Version, version)
	}
	var list struct {
		Tools []struct {
			Name   string `json:"name"`
			Schema struct {
				Required []string `json:"required"`
			} `json:"inputSchema"`
		} `json:"tools"`
	}
	d.do(map[string]any{"do": "list"}, &list)
	names := map[string]string{}
	for _, tool := range list.Tools {
		names[tool.Name] = fmt.Sprint(tool.Schema.Required)
	}
	if names["human_approval"] != "[item amount]" || names["execution_status"] == "" || names["execution_resume"] == "" {
		t.Fatalf("tools %v", names)
	}
	if c := d.call("human_approval", map[string]any{"item": "cup", "amount": 5}); c.Result.IsError || c.Result.Structured.Status != "SUCCESS" || len(c.Asked) != 0 {
		t.Errorf("a cheap thing: %+v", c)
	}
	if c := d.call("human_approval", map[string]any{"item": "cup"}); !c.Result.IsError || c.Result.Structured.Error.Code != "invalid_input" || !strings.Contains(c.Result.Content[0].Text, "amount") {
		t.Errorf("without an amount: %+v", c)
	}
	// The user is asked by the client, and agrees.
	d.do(map[string]any{"do": "replies", "list": []any{map[string]any{"action": "accept", "content": map[string]any{"action": "buy"}}}}, nil)
	c := d.call("human_approval", map[string]any{"item": "desk", "amount": 900})
	if c.Result.IsError || c.Result.Structured.Status != "SUCCESS" || len(c.Asked) != 1 || !strings.Contains(c.Asked[0].Message, "Buy a desk?") || !strings.Contains(c.Result.Content[0].Text, "is ordered") {
		t.Errorf("agreed: %+v", c)
	}
	// Where the user is asked within the call, what was told before has been heard. Otherwise a client may take the answer first.
	if len(c.Progress) == 0 && version != "2026-07-28" {
		t.Errorf("no progress was told: %+v", c)
	}
	// They do not answer: the run waits, and goes on with an answer later.
	d.do(map[string]any{"do": "replies", "list": []any{map[string]any{"action": "decline"}}}, nil)
	c = d.call("human_approval", map[string]any{"item": "desk", "amount": 901})
	told := c.Result.Structured
	if c.Result.IsError || told.Status != "WAITING_FOR_HUMAN" || told.Resume != "execution_resume" || len(told.Questions) != 1 {
		t.Fatalf("not answered: %+v", c)
	}
	if s := d.call("execution_status", map[string]any{"execution_id": told.ExecutionID}); s.Result.Structured.Status != "WAITING_FOR_HUMAN" {
		t.Errorf("its status: %+v", s)
	}
	answer := map[string]any{"execution_id": told.ExecutionID, "interaction_id": told.Questions[0].ID, "answer": map[string]any{"action": "refuse", "notes": "too dear"}}
	if c = d.call("execution_resume", answer); c.Result.IsError || c.Result.Structured.Status != "SUCCESS" || !strings.Contains(c.Result.Content[0].Text, "too dear") {
		t.Errorf("refused later: %+v", c)
	}
	if c = d.call("execution_resume", answer); !c.Result.IsError || c.Result.Structured.Error.Code != "conflict" {
		t.Errorf("answered twice: %+v", c)
	}
	d.do(map[string]any{"do": "close"}, nil)
}
