package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// snippet is a fenced block of a document.
type snippet struct {
	line             int
	language, source string
	// note is the comment in front of it, which says if it is not simply run: "checked: …" its commands and flags are, "not run: …" it is not.
	note string
}

// snippetsOf takes a document apart.
func snippetsOf(t *testing.T, file string) []snippet {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []snippet
	var open *snippet
	note, n := "", 0
	for line := range strings.Lines(string(text)) {
		n++
		fence := strings.TrimSpace(line)
		switch {
		case open == nil && strings.HasPrefix(fence, "```"):
			open = &snippet{line: n, language: strings.TrimPrefix(fence, "```"), note: note}
		case open != nil && fence == "```":
			list, open = append(list, *open), nil
		case open != nil:
			open.source += line
		}
		if open == nil {
			note = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(fence, "<!--"), "-->"))
			if !strings.HasPrefix(fence, "<!--") {
				note = ""
			}
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: the block does not end", file, open.line)
	}
	return list
}

// reader is somebody who follows a document: in a directory with bin/tandem and the examples, on a terminal, answering yes when asked.
type reader struct {
	dir, path string
	fill      *strings.Replacer
	env       []string
}

// newReader prepares a directory. With a server, one runs there, as after "make run".
func newReader(t *testing.T, served bool) *reader {
	t.Helper()
	dir, err := os.MkdirTemp("", "docs") // with a name that is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	tandem, err := exec.LookPath("tandem")
	if err != nil {
		t.Fatal(err)
	}
	builder, err := exec.LookPath("make")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"bin", "shims", "docs"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{tandem: "bin/tandem", filepath.Join(root, "examples"): "examples"} {
		if err := os.Symlink(from, filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range map[string]string{
		// What make and go would build and measure is checked to be there; npx starts the tool server of these tests.
		"make": `exec "` + builder + `" -n -C "` + root + `" "$@" >/dev/null`,
		"go":   `name=; for a in "$@"; do case "$was" in -bench) name=$a;; esac; was=$a; case "$a" in ./*) grep -rqs "func Benchmark.*${name#Benchmark}" "` + root + `/$a" || { echo "no $name in $a"; exit 1; };; esac; done`,
		"npx":  `exec toolbox calls.txt files`,
	} {
		if err := os.WriteFile(filepath.Join(dir, "shims", name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	model := httptest.NewServer(http.HandlerFunc(answerLikeAModel))
	t.Cleanup(model.Close)
	r := &reader{dir: dir, path: filepath.Join(dir, "shims") + ":" + filepath.Dir(tandem) + ":" + os.Getenv("PATH")}
	r.env = []string{"PATH=" + r.path, "HOME=" + dir, "TMPDIR=" + dir, "TERM=xterm", "NO_COLOR=1", "GOGC=" + os.Getenv("GOGC"), "OPENAI_API_KEY=k1", "ANTHROPIC_API_KEY=k2", "GEMINI_API_KEY=k3"}
	if cache, err := os.UserCacheDir(); err == nil { // where the interpreter is compiled already
		r.env = append(r.env, "XDG_CACHE_HOME="+cache)
	}
	secret, address := "tdm_of_the_readers_0123456789", "127.0.0.1:1"
	r.env = append(r.env, "TANDEM_TOKEN="+secret)
	if served {
		cmd := exec.Command("tandem", "serve", "--addr", "127.0.0.1:0", "--data", "data", "--workflows", "examples") // it ends with stop
		cmd.Dir, cmd.Env = dir, r.env
		_, said := serving(t, cmd)
		address = strings.TrimPrefix(printed(t, said, `http://127\.0\.0\.1:[0-9]+`), "http://")
		t.Cleanup(func() { stop(t, cmd, syscall.SIGTERM) })
	}
	r.fill = strings.NewReplacer(
		"127.0.0.1:8080", address, "127.0.0.1:11434", strings.TrimPrefix(model.URL, "http://"), "/srv/docs", filepath.Join(dir, "docs"), "/path/to/data", filepath.Join(dir, "data"),
		"TANDEM_TOKEN=…", "TANDEM_TOKEN="+secret, "Bearer TOKEN", "Bearer "+secret, `"TOKEN"`, `"`+secret+`"`,
		" EXECUTION", ` "$(the_last)"`,
	)
	return r
}

// answerLikeAModel is what a local model says, to whatever it is asked, in the protocol of OpenAI.
func answerLikeAModel(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Stream bool `json:"stream"`
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &asked)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !asked.Stream {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"c","object":"chat.completion","model":"llama3.2","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"llama3.2\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
}

// prelude is what a reader knows: which execution was the last one.
const prelude = `the_last() { tandem executions list --page-size 1 --json | sed -n 's/.*"execution_id": "\(.*\)",*/\1/p' | head -n 1; }
`

// follow types a block into a shell on a terminal and says yes to what it asks.
func (r *reader) follow(t *testing.T, where, source string) {
	t.Helper()
	here, there, err := openTerminal()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", prelude+r.fill.Replace(source))
	cmd.Dir, cmd.Env = r.dir, r.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = there, there, there
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	late := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() }) // it waits for what nobody types; its status tells
	defer late.Stop()
	answered := 0
	for buffer := make([]byte, 4096); ; {
		n, err := here.Read(buffer)
		shown.Write(buffer[:n])
		if ask := prompt.FindString(shown.String()[answered:]); ask != "" {
			answered = shown.Len()
			if _, err := here.WriteString(answerTo(ask) + "\n"); err != nil {
				t.Error(err)
			}
		}
		if err != nil { // a terminal that nobody has open any more is an error to read
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: %v\n%s\nit showed:\n%s", where, err, source, strings.ReplaceAll(shown.String(), "\r\n", "\n"))
	}
	if err := here.Close(); err != nil {
		t.Error(err)
	}
}

// prompt is how commands ask: with a line that does not end.
var prompt = regexp.MustCompile(`[^\n]+(?:: |\? |\] )$`)

// answerTo is what a reader types: yes, the first, or some number.
func answerTo(prompt string) string {
	switch {
	case strings.Contains(prompt, "(optional)"), strings.Contains(prompt, "Enter to leave it"):
		return ""
	case strings.Contains(prompt, "a date like"):
		return "2026-05-01"
	case strings.Contains(prompt, "[y"):
		return "y"
	case strings.HasPrefix(prompt, "Which"):
		return "1"
	}
	return "2"
}

// check asks every command of a block whether it knows the flags.
func (r *reader) check(t *testing.T, where, source string) {
	t.Helper()
	for line := range strings.Lines(strings.ReplaceAll(source, "\\\n", "")) {
		line = strings.TrimSpace(line)
		if at := strings.Index(line, " #"); at > 0 {
			line = strings.TrimSpace(line[:at])
		}
		if strings.HasPrefix(line, "tandem ") || strings.HasPrefix(line, "./bin/tandem ") {
			line += " --help"
		}
		if line != "" {
			r.follow(t, where, line)
		}
	}
}

// Everything that README and docs tell people to type is typed, as it is written: only addresses, the token and the last execution are filled in.
func TestDocs(t *testing.T) {
	t.Parallel()
	documents := []string{"README.md", "README.zh-CN.md", "CONTRIBUTING.md"}
	more, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(more) < 10 {
		t.Fatalf("%d documents, %v", len(more), err)
	}
	for _, file := range more {
		documents = append(documents, filepath.Join("docs", filepath.Base(file)))
	}
	served := []string{"README.md", "README.zh-CN.md", "docs/api.md", "docs/mcp_server.md"}
	for _, name := range documents {
		list := snippetsOf(t, filepath.Join("..", "..", name))
		if !slices.ContainsFunc(list, func(s snippet) bool { return slices.Contains([]string{"sh", "yaml", "json", "go"}, s.language) }) {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			r := newReader(t, slices.Contains(served, name))
			if name == "docs/models.md" { // what its profile names
				r.follow(t, name, "tandem credentials set openai-key --type openai --env api_key=OPENAI_API_KEY >/dev/null; echo '{id: spare, provider: scripted, model: m, script: {rules: [{reply: ok}]}}' | tandem profiles set -")
			}
			for _, s := range list { // what is shown as a file is one
				if first, _, _ := strings.Cut(s.source, "\n"); s.language == "yaml" && strings.HasPrefix(first, "# ") && strings.HasSuffix(first, ".yaml") {
					if err := os.WriteFile(filepath.Join(r.dir, strings.TrimPrefix(first, "# ")), []byte(r.fill.Replace(s.source)), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, s := range list {
				where := fmt.Sprintf("%s:%d", name, s.line)
				switch {
				case strings.HasPrefix(s.note, "not run: "):
				case s.language == "sh" && strings.HasPrefix(s.note, "checked: "):
					r.check(t, where, s.source)
				case s.language == "sh" && strings.Contains(s.source, "curl ") && !installed("curl"):
					t.Logf("%s: NOT RUN, there is no curl on this machine", where)
				case s.language == "sh":
					r.follow(t, where, s.source)
				case s.language == "go":
					checkGo(t, where, s.source)
				case s.language == "json":
					if !json.Valid([]byte(s.source)) {
						t.Errorf("%s: it is not JSON", where)
					}
				case s.language == "yaml":
					r.take(t, where, s.source)
				case s.language == "" && strings.Contains(s.source, "tandem ") && !strings.Contains(s.source, "…"):
					t.Errorf("%s: a command in a block without a language is not tested; call it sh", where)
				}
			}
		})
	}
}

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// checkGo parses statements in Go and looks for the exported names of Tandem's packages that they use.
func checkGo(t *testing.T, where, source string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "snippet.go", "package p\nfunc _() {\n"+source+"}\n", 0)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	ast.Inspect(file, func(n ast.Node) bool {
		use, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of, ok := use.X.(*ast.Ident)
		files, err := filepath.Glob(filepath.Join("..", "..", fmt.Sprint(of), "*.go"))
		if err != nil {
			t.Error(err)
		}
		if !ok || len(files) == 0 { // a variable
			return true
		}
		declared := regexp.MustCompile(`(?m)^(?:func|type|var|const|\t) ?` + use.Sel.Name + `\b`)
		if !slices.ContainsFunc(files, func(name string) bool {
			text, err := os.ReadFile(name)
			return err == nil && declared.Match(text)
		}) {
			t.Errorf("%s: package %s has no %s", where, of.Name, use.Sel.Name)
		}
		return true
	})
}

// take gives a document to the command that reads such documents.
func (r *reader) take(t *testing.T, where, source string) {
	t.Helper()
	const workflow = "metadata: {name: w, description: d}\nnodes:\n"
	command := "tandem validate -"
	switch {
	case strings.Contains(source, "metadata:"):
		command = "tandem run - --input name=Ada"
	case strings.HasPrefix(source, "- id:"):
		source = workflow + "  " + strings.ReplaceAll(strings.Replace(source, "- id:", "- description: d\n  id:", 1), "\n", "\n  ")
	case strings.Contains(source, "provider:"):
		command = "tandem profiles set -"
	case strings.Contains(source, "transport:"), strings.Contains(source, "llm_profile:"), strings.Contains(source, "policy:"):
		return // a file that the commands of the document take
	}
	file := filepath.Join(r.dir, "taken.yaml")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	r.follow(t, where, strings.Replace(command, " -", " taken.yaml", 1))
}

// The examples of which README says that they run as they are do: with the commands in their first lines.
func TestDocs_Examples(t *testing.T) {
	t.Parallel()
	said := []string{"parcels.yaml", "daily_report.yaml", "health_check.yaml"}
	for _, pattern := range []string{"ai_*.yaml", "human_*.yaml"} {
		more, err := filepath.Glob(filepath.Join("..", "..", "examples", pattern))
		if err != nil || len(more) < 4 {
			t.Fatalf("%s: %v, %v", pattern, more, err)
		}
		for _, file := range more {
			said = append(said, filepath.Base(file))
		}
	}
	r := newReader(t, false)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	for _, name := range said {
		text, err := os.ReadFile(filepath.Join("..", "..", "examples", name))
		if err != nil {
			t.Fatal(err)
		}
		commands := regexp.MustCompile(`(?m)^#   (tandem run .*)$`).FindAllStringSubmatch(string(text), -1)
		if len(commands) == 0 {
			t.Errorf("%s does not say how it is run", name)
		}
		for _, c := range commands {
			r.follow(t, name, strings.Replace(c[1], "http://127.0.0.1:8080", server.URL, 1))
		}
	}
}
