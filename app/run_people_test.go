package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/store/sqlite/sqlitetest"
)

// askingFlow asks one question of a node, configured as given.
func askingFlow(t *testing.T, configuration string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "asking.yaml")
	text := fmt.Sprintf("metadata: {id: asking, name: asking, description: d}\nnodes:\n  - {id: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: %s}\n", configuration)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The person who runs a workflow is asked, hears what is wrong with an answer, and may try again. When the question has ended the asking ends,
// too, no matter who ended it.
func TestRunFile_Asks(t *testing.T) {
	t.Parallel()
	asked := 0
	_, e, err := RunFile(t.Context(), Run{
		File: askingFlow(t, `{title: Pay it}`), Dir: sqlitetest.Dir(t), Version: "test",
		Ask: func(ctx context.Context, q api.Interaction, answer func(json.RawMessage) error) error {
			asked++
			if err := answer(json.RawMessage(`{"action":"perhaps"}`)); fault.CodeOf(err) != fault.InvalidInput {
				t.Errorf("a wrong answer: %v", err)
			}
			if err := answer(json.RawMessage(`{"action":"approve"}`)); err != nil {
				t.Error(err)
			}
			if err := answer(json.RawMessage(`{"action":"reject"}`)); fault.CodeOf(err) != fault.Conflict {
				t.Errorf("a second answer: %v", err)
			}
			<-ctx.Done()
			if why := context.Cause(ctx); !errors.Is(why, ErrFaster) {
				t.Errorf("the asking ends because of %v", why)
			}
			return context.Cause(ctx)
		},
	})
	if err != nil || e.Status != string(engine.StatusSuccess) || asked != 1 {
		t.Errorf("asked %d times; %+v, %v", asked, e, err)
	}
}

// A question that I may answer without being asked, since nobody is left who was, waits for me as any other.
func TestRunFile_AsksAdmins(t *testing.T) {
	t.Parallel()
	asked := false
	_, _, err := RunFile(t.Context(), Run{
		File: askingFlow(t, `{title: Pay it, approvers: ["user:gone"]}`), Dir: sqlitetest.Dir(t), Version: "test",
		Ask: func(ctx context.Context, q api.Interaction, answer func(json.RawMessage) error) error {
			asked = ctx.Err() == nil
			return answer(json.RawMessage(`{"action":"approve"}`))
		},
	})
	if err != nil || !asked {
		t.Errorf("asked: %t; %v", asked, err)
	}
}

// A question that only others can answer parks the run: in this process nobody would.
func TestRunFile_ParksForOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, configuration string
		asks                int
	}{
		{"NotAsked", `{title: Pay it, approvers: ["ann@example.com"]}`, 0},
		{"NotAlone", `{title: Pay it, approvers: ["ann@example.com", "user:local"], min_approvals: 2}`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			_, _, err := RunFile(t.Context(), Run{
				File: askingFlow(t, c.configuration), Dir: sqlitetest.Dir(t), Version: "test",
				Ask: func(_ context.Context, _ api.Interaction, answer func(json.RawMessage) error) error {
					asked++
					return answer(json.RawMessage(`{"action":"approve"}`))
				},
			})
			if !errors.Is(err, ErrAsked) || asked != c.asks || !strings.Contains(err.Error(), "tandem approve ") {
				t.Errorf("asked %d times; %v", asked, err)
			}
		})
	}
}

// What an execution asks that the run has started is asked here as well.
func TestRunFile_AsksForChildren(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	c := connectTo(t, dir)
	c.applyText(t, "metadata: {id: kid, name: kid, description: d}\nnodes:\n  - {id: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: Pay it}}\n")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "par.yaml")
	if err := os.WriteFile(file, []byte(subFlow("true")), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := 0
	_, e, err := RunFile(t.Context(), Run{
		File: file, Dir: dir, Version: "test",
		Ask: func(_ context.Context, _ api.Interaction, answer func(json.RawMessage) error) error {
			asked++
			return answer(json.RawMessage(`{"action":"approve"}`))
		},
	})
	if err != nil || e.Status != string(engine.StatusSuccess) || asked != 1 {
		t.Errorf("asked %d times; %+v, %v", asked, e, err)
	}
}
