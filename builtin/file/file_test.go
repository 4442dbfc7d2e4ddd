package file_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/builtin/file"
	"tandem/credential"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/node/nodetest"
)

// fileRig is a workspace on disk and the kinds that work on it.
type fileRig struct {
	t      *testing.T
	server *httptest.Server
	files  nodetest.Files
	creds  map[string]string
	kinds  map[string]node.Kind

	mu      sync.Mutex
	details map[string]any

	dir  string // of the workspace
	runs int
	// execution, when it is set, makes the next runs attempts of the same.
	execution string
}

func newFileRig(t *testing.T, handler http.HandlerFunc) *fileRig {
	t.Helper()
	base := t.TempDir()
	r := &fileRig{
		t: t, server: nodetest.Serve(t, handler), creds: map[string]string{}, details: map[string]any{}, kinds: map[string]node.Kind{}, dir: filepath.Join(base, "acme"),
	}
	for _, k := range file.Kinds(file.Deps{HTTP: nodetest.Client(t, "127.0.0.1"), Files: files.New(base)}) {
		r.kinds[k.About.Name] = k
	}
	return r
}

// try runs a kind; every run is another execution, unless the rig is told otherwise.
func (r *fileRig) try(ctx context.Context, name, config, input string) (map[string]any, error) {
	r.t.Helper()
	call := nodetest.NewCall(r.t, strings.ReplaceAll(config, "$URL", r.server.URL), strings.ReplaceAll(input, "$URL", r.server.URL))
	r.runs++
	call.Workspace, call.ExecutionID, call.Files = "acme", fmt.Sprint("exec_", r.runs), &r.files
	if r.execution != "" {
		call.ExecutionID = r.execution
	}
	call.Clock = func() time.Time { return nodetest.Start() }
	call.Detail = func(fields map[string]any) {
		r.mu.Lock()
		defer r.mu.Unlock()
		maps.Copy(r.details, fields)
	}
	call.Credential = func(_ context.Context, id string, _ ...string) (credential.Opened, error) {
		data, ok := r.creds[id]
		if !ok {
			return credential.Opened{}, fault.Newf(fault.CredentialMissing, "there is no credential %q", id)
		}
		return credential.Opened{ID: id, Type: "http_auth", Data: json.RawMessage(data)}, nil
	}
	out, err := r.kinds[name].Run(ctx, call)
	if err != nil {
		return nil, err
	}
	result, ok := nodetest.Value(r.t, string(out.(node.Done)["result"])).(map[string]any)
	if !ok {
		r.t.Fatalf("result is %s", out.(node.Done)["result"])
	}
	return result, nil
}

// good runs a kind that must succeed with at least the fields wanted.
func (r *fileRig) good(name, config, input, want string) map[string]any {
	r.t.Helper()
	got, err := r.try(r.t.Context(), name, config, input)
	if err != nil {
		r.t.Fatalf("%s: %v (%s)", config, err, fault.From(err).Detail)
	}
	for _, d := range nodetest.Differences("result", nodetest.Value(r.t, want), any(got)) {
		r.t.Error(config, d)
	}
	return got
}

func (r *fileRig) bad(name, config, input string, code fault.Code, part string) *fault.Error {
	r.t.Helper()
	_, err := r.try(r.t.Context(), name, config, input)
	if fault.CodeOf(err) != code || !strings.Contains(err.Error(), part) {
		r.t.Fatalf("%s: got %v, want %s with %q", config, err, code, part)
	}
	return fault.From(err)
}

func (r *fileRig) put(name, content string) {
	r.t.Helper()
	name = filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *fileRig) content(name string) string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

// left lists what is on disk besides what begun work is known by.
func (r *fileRig) left() string {
	r.t.Helper()
	var list []string
	err := filepath.WalkDir(r.dir, func(p string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !strings.Contains(p, "receipts") {
			list = append(list, strings.TrimPrefix(p, r.dir+"/"))
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return strings.Join(list, " ")
}

const (
	fileOp = "ACTION.FILE_OPERATION"
	hello  = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
)

func TestFileOperation(t *testing.T) {
	t.Parallel()
	t.Run("Life", func(t *testing.T) {
		t.Parallel()
		r := newFileRig(t, nil)
		r.good(fileOp, `{"operation": "write", "path": "a/hello.txt", "content": "hello"}`, ``, `{"path": "a/hello.txt", "size": 5, "sha256": "`+hello+`", "exists": true, "type": "file"}`)
		r.good(fileOp, `{"operation": "read", "path": "a/hello.txt"}`, ``,
			`{"content": "hello", "size": 5, "file": {"blob": "`+hello+`", "name": "hello.txt", "content_type": "text/plain; charset=utf-8", "size": 5, "sha256": "`+hello+`"}}`)
		r.good(fileOp, `{"operation": "read", "path": "a/hello.txt", "encoding": "base64"}`, ``, `{"content": "aGVsbG8="}`)
		r.good(fileOp, `{"operation": "append", "path": "a/hello.txt", "content": " again"}`, ``, `{"size": 11}`)
		r.good(fileOp, `{"operation": "copy", "path": "a/hello.txt", "destination": "b.txt"}`, ``, `{"path": "b.txt", "size": 11}`)
		r.good(fileOp, `{"operation": "move", "path": "b.txt", "destination": "c/d.txt"}`, ``, `{"path": "c/d.txt"}`)
		r.good(fileOp, `{"operation": "exists", "path": "b.txt"}`, ``, `{"path": "b.txt", "exists": false}`)
		r.good(fileOp, `{"operation": "exists", "path": "c/d.txt"}`, ``, `{"exists": true}`)
		r.good(fileOp, `{"operation": "stat", "path": "c"}`, ``, `{"type": "directory"}`)
		r.good(fileOp, `{"operation": "mkdir", "path": "e"}`, ``, `{"path": "e", "type": "directory"}`)
		r.good(fileOp, `{"operation": "hash", "path": "c/d.txt"}`, ``, `{"size": 11}`)
		r.good(fileOp, `{"operation": "list", "path": ".", "recursive": true, "pattern": "*.txt"}`, ``, `{"files": [{"path": "a/hello.txt", "name": "hello.txt", "type": "file", "size": 11}, {"path": "c/d.txt"}]}`)
		r.good(fileOp, `{"operation": "list", "path": "e"}`, ``, `{"files": []}`)
		r.good(fileOp, `{"operation": "archive", "path": "a", "destination": "a.zip"}`, ``, `{"path": "a.zip", "type": "file"}`)
		r.good(fileOp, `{"operation": "extract", "path": "a.zip", "destination": "f"}`, ``, `{"path": "f", "files": [{"path": "f/hello.txt", "size": 11}]}`)
		r.good(fileOp, `{"operation": "delete", "path": "a", "recursive": true}`, ``, `{"path": "a", "exists": false}`)
		if got := r.left(); got != "a.zip c/d.txt f/hello.txt" {
			t.Errorf("on disk: %s", got)
		}
	})
	t.Run("Refuses", func(t *testing.T) {
		t.Parallel()
		r := newFileRig(t, nil)
		r.put("a.txt", "a")
		r.put("bin.dat", "\xff\xfe\x00")
		r.put("dir/x.txt", "x")
		r.put("big.txt", strings.Repeat("x", 100))
		for _, c := range []struct {
			config string
			code   fault.Code
			part   string
		}{
			{`{"operation": "read", "path": "../b/secret"}`, fault.ForbiddenPath, `".."`},
			{`{"operation": "read", "path": "/etc/passwd"}`, fault.ForbiddenPath, "absolute"},
			{`{"operation": "read", "path": "gone.txt"}`, fault.NotFound, "gone.txt"},
			{`{"operation": "read", "path": "dir"}`, fault.InvalidInput, "directory"},
			{`{"operation": "read", "path": "bin.dat"}`, fault.InvalidInput, "base64"},
			{`{"operation": "read", "path": "big.txt", "max_bytes": 99}`, fault.TooLarge, "max_bytes"},
			{`{"operation": "write", "path": "a.txt", "content": "b"}`, fault.Conflict, "overwrite"},
			{`{"operation": "write", "path": "n.txt", "content": "abc", "max_bytes": 2}`, fault.TooLarge, "max_bytes"},
			{`{"operation": "write", "path": "n.txt"}`, fault.InvalidConfig, "content"},
			{`{"operation": "write", "path": "n.txt", "content": "%%", "encoding": "base64"}`, fault.InvalidInput, "base64"},
			{`{"operation": "write", "path": ".", "content": "x"}`, fault.InvalidInput, "files directory"},
			{`{"operation": "write", "path": ".tandem/x", "content": "x"}`, fault.ForbiddenPath, ""},
			{`{"operation": "copy", "path": "a.txt"}`, fault.InvalidConfig, "destination"},
			{`{"operation": "copy", "path": "a.txt", "destination": "../x"}`, fault.ForbiddenPath, ""},
			{`{"operation": "delete", "path": "dir"}`, fault.Conflict, "recursive"},
			{`{"operation": "delete", "path": "dir", "recursive": true, "pattern": "*.csv"}`, fault.InvalidConfig, "pattern"},
			{`{"operation": "delete", "path": "gone"}`, fault.NotFound, ""},
			{`{"operation": "mkdir", "path": "dir"}`, fault.Conflict, ""},
			{`{"operation": "list", "path": ".", "pattern": "[x"}`, fault.InvalidConfig, "pattern"},
			{`{"operation": "exists", "path": "x/../../y"}`, fault.ForbiddenPath, ""},
			{`{"operation": "sing", "path": "a"}`, fault.InvalidConfig, "operation"},
			{`{"operation": "read", "path": "a.txt", "paht": "x"}`, fault.InvalidConfig, "path"},
		} {
			r.bad(fileOp, c.config, ``, c.code, c.part)
		}
		if got := r.left(); got != "a.txt big.txt bin.dat dir/x.txt" {
			t.Errorf("on disk: %s", got)
		}
	})
	t.Run("WritesValues", func(t *testing.T) {
		t.Parallel()
		r := newFileRig(t, nil)
		file := r.good(fileOp, `{"operation": "write", "path": "x.bin", "content": "AAEC", "encoding": "base64"}`, ``, `{"size": 3}`)
		if r.content("x.bin") != "\x00\x01\x02" {
			t.Error("base64 was not decoded")
		}
		read := r.good(fileOp, `{"operation": "read", "path": "x.bin", "encoding": "base64"}`, ``, `{"sha256": "`+fmt.Sprint(file["sha256"])+`"}`)
		r.good(fileOp, `{"operation": "write", "path": "y.bin", "content": `+nodetest.Text(read["file"])+`}`, ``, `{"sha256": "`+fmt.Sprint(file["sha256"])+`"}`)
		r.good(fileOp, `{"operation": "write", "path": "z.json", "content": {"a": [1, 2.50]}}`, ``, `{}`)
		if got := r.content("z.json"); got != `{"a": [1, 2.50]}` {
			t.Errorf("a value became %s", got)
		}
		r.good(fileOp, `{"operation": "write", "path": "u.json", "content": {"\u540d": "\u5f20\u003cb\u003e"}}`, ``, `{}`)
		if got := r.content("u.json"); got != `{"名": "张<b>"}` {
			t.Errorf("a value became %s", got)
		}
		r.good(fileOp, `{"operation": "write", "path": "n.txt", "content": 7}`, ``, `{"size": 1}`)
	})
	t.Run("Repeats", func(t *testing.T) {
		t.Parallel()
		r := newFileRig(t, nil)
		r.put("from.txt", "x")
		r.put("tree/a.txt", "a")
		for i, config := range []string{
			`{"operation": "write", "path": "w.txt", "content": "same"}`,
			`{"operation": "copy", "path": "w.txt", "destination": "copy.txt"}`,
			`{"operation": "copy", "path": "tree", "destination": "tree2", "recursive": true}`,
			`{"operation": "move", "path": "from.txt", "destination": "to.txt"}`,
			`{"operation": "mkdir", "path": "d"}`,
			`{"operation": "archive", "path": "to.txt", "destination": "z.zip"}`,
			`{"operation": "extract", "path": "z.zip", "destination": "out"}`,
			`{"operation": "delete", "path": "d"}`,
		} {
			r.execution = fmt.Sprint("crashed_", i)
			first := r.good(fileOp, config, ``, `{}`)
			second := r.good(fileOp, config, ``, `{}`)
			if nodetest.Text(first["path"]) != nodetest.Text(second["path"]) || nodetest.Text(first["sha256"]) != nodetest.Text(second["sha256"]) {
				t.Errorf("%s: %v, then %v", config, first, second)
			}
			r.execution = ""
			if config[15:20] != "write" { // another execution finds what the first has done
				continue
			}
			r.bad(fileOp, config, ``, fault.Conflict, "overwrite")
		}
	})
	t.Run("AppendFailsFinally", func(t *testing.T) {
		t.Parallel()
		r := newFileRig(t, nil)
		r.put("d/x", "x")
		if f := r.bad(fileOp, `{"operation": "append", "path": "d", "content": "x"}`, ``, fault.InvalidInput, ""); f.Retryable {
			t.Error("a failed append would be tried again")
		}
	})
	t.Run("NoFilesHere", func(t *testing.T) {
		t.Parallel()
		_, err := kinds().Run(t, fileOp, nodetest.NewCall(t, `{"operation": "list", "path": "."}`, ``))
		nodetest.WantError(t, err, fault.Unsupported, "files directory")
	})
}
