package app

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"tandem/api"
	"tandem/client"
	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store/sqlite/datadir"
)

// besideADirectory is a data directory with a name that fits a socket, whatever the test is called.
func besideADirectory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "beside")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A command on a directory that a server has open goes through the server, as the local user, without a token.
func TestBeside(t *testing.T) {
	t.Parallel()
	dir := besideADirectory(t)
	s := startServer(t, ServeOptions{Dir: dir})
	socket, err := os.Stat(filepath.Join(dir, SocketFile))
	if err != nil || runtime.GOOS != "windows" && socket.Mode().Perm() != 0o600 {
		t.Fatalf("the socket: %v, %v", socket, err)
	}
	c, err := NewConnection(t.Context(), Connect{Dir: dir, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Local() {
		t.Error("it says that the API is in this process")
	}
	me, err := c.Me(t.Context())
	if err != nil || me.ID != "local" {
		t.Errorf("it is %+v, %v", me, err)
	}

	t.Run("Run", func(t *testing.T) {
		id, here := "", true
		report, e, err := RunFile(t.Context(), Run{
			File: "../examples/parcels.yaml", Dir: dir, Version: "test", Inputs: json.RawMessage(`{"parcels":[{"id":"p1","kg":2}]}`),
			Started: func(execution string, driven bool) { id, here = execution, driven },
		})
		if err != nil || !report.Valid || engine.Status(e.Status) != engine.StatusSuccess || here || e.ExecutionID != id {
			t.Fatalf("it is %s of %q, here %v: %v", e.Status, id, here, err)
		}
		if at := s.want(200, "GET", "/api/v1/executions/"+id, ""); at["execution"].(map[string]any)["status"] != e.Status {
			t.Errorf("at the server it is %v", at)
		}
		if _, again, err := RunFile(t.Context(), Run{Resume: id, Dir: dir, Version: "test"}); err != nil || again.ExecutionID != id {
			t.Errorf("followed again: %q, %v", again.ExecutionID, err)
		}
	})
	t.Run("FlagsOfThisProcess", func(t *testing.T) {
		_, _, err := RunFile(t.Context(), Run{File: "../examples/parcels.yaml", Dir: dir, Version: "test", Flags: []string{"--http-allow"}})
		if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "leave out --http-allow") {
			t.Errorf("it says %v", err)
		}
	})
	t.Run("Leaves", func(t *testing.T) {
		id := ""
		ctx, leave := context.WithCancel(t.Context())
		_, _, err := RunFile(ctx, Run{File: "../examples/human_approval.yaml", Dir: dir, Version: "test", Inputs: json.RawMessage(`{"item":"desk","amount":900}`), Started: func(execution string, _ bool) {
			id = execution
			leave()
		}})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("it ended with %v", err)
		}
		// The server goes on without it, up to the question.
		asked := errors.New("asked")
		err = c.Watch(t.Context(), id, "", client.VocabularyExecution, func(e api.Event) error {
			if err := (Run{}).asked(e); err != nil {
				return asked
			}
			return nil
		})
		if !errors.Is(err, asked) {
			t.Errorf("its stream ended with %v", err)
		}
		if _, _, err := RunFile(t.Context(), Run{Resume: id, Dir: dir, Version: "test"}); !errors.Is(err, ErrAsked) {
			t.Errorf("resumed without a person at hand: %v", err)
		}
		_, e, err := RunFile(t.Context(), Run{Resume: id, Dir: dir, Version: "test", Ask: func(_ context.Context, _ api.Interaction, answer func(json.RawMessage) error) error {
			return answer(json.RawMessage(`{"action":"buy"}`))
		}})
		if err != nil || engine.Status(e.Status) != engine.StatusSuccess {
			t.Fatalf("resumed and answered it is %s: %v", e.Status, err)
		}
		answers, err := c.Interactions(t.Context(), client.InteractionQuery{ExecutionID: id})
		if err != nil || len(answers.Interactions) != 1 {
			t.Fatalf("answers: %+v, %v", answers, err)
		}
		q, err := c.Interaction(t.Context(), answers.Interactions[0].ID)
		if err != nil || len(q.Responses) != 1 {
			t.Fatalf("the question: %+v, %v", q, err)
		}
		if a := q.Responses[0]; a.UserID != "local" || a.Means.Kind != identity.ByLocal || a.Means.Address != systemAccount() {
			t.Errorf("answered by %q, %+v", a.UserID, a.Means)
		}
	})

	s.stopAndWait()
	if _, err := os.Stat(filepath.Join(dir, SocketFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// What is left of a server that died is replaced by the next, and does not mislead a command.
func TestBeside_Left(t *testing.T) {
	t.Parallel()
	dir := besideADirectory(t)
	if err := os.WriteFile(filepath.Join(dir, SocketFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	own := connectTo(t, dir) // nobody has the directory, so the command opens it
	if !own.Local() {
		t.Error("it was taken for a server")
	}
	if _, err := NewConnection(t.Context(), Connect{Dir: dir, Version: "test"}); !isInUse(err) || !strings.Contains(err.Error(), "--server") {
		t.Errorf("beside a command: %v", err)
	}
	if err := own.Close(); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, ServeOptions{Dir: dir})
	c, err := NewConnection(t.Context(), Connect{Dir: dir, Version: "test"})
	if err != nil || c.Local() {
		t.Fatalf("beside the server: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	s.stopAndWait()
}

// A directory whose name is too long for a socket is served all the same, and says what to do instead.
func TestBeside_LongName(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(besideADirectory(t), strings.Repeat("d", maxSocketPath))
	s := startServer(t, ServeOptions{Dir: dir})
	if _, err := NewConnection(t.Context(), Connect{Dir: dir, Version: "test"}); !isInUse(err) || !strings.Contains(err.Error(), "--server") {
		t.Errorf("beside it: %v", err)
	}
	s.stopAndWait()
	if _, err := datadir.Inspect(t.Context(), dir); err != nil {
		t.Error(err)
	}
}
