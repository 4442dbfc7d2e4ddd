package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tandem/engine"
	"tandem/identity"
	"tandem/store"
)

// testReadAsWritten reads executions as they were written, whatever their texts hold: the character that stands between texts when they are
// read, too.
func testReadAsWritten(t *testing.T, stores store.Stores) {
	p := identity.System(tenant(t).Workspace)
	texts := []string{"", "plain", "\x1f", "a\x1fb", "\x1f7\x1f8\x1f", "名\x00<b>\"'\\", "\x1e\x1d", "7"}
	for n, text := range texts {
		for place := range 5 {
			want := store.Execution{
				Workspace: p.Workspace, ID: fmt.Sprintf("e%d.%d", n, place), WorkflowID: fmt.Sprintf("f%d.%d", n, place),
				WorkflowName: "name", WorkflowVersion: "1.0", Revision: 1 << 60, RevisionHash: "hash+set",
				Status: engine.StatusError, Priority: -3, Parent: "parent", ForkedFrom: "source", TriggerType: "API", User: "ann",
				TokenMadeBy: "bob", Conversation: "talk",
				Started: 2, Ended: 1794809501713, DurationMS: 4, Credits: 0.1 + 0.2*float64(n), Error: "why", Created: 1, Updated: 1,
			}
			switch place {
			case 0:
				want.WorkflowName = text
			case 1:
				want.Error = text
			case 2:
				want.User = text
			case 3:
				want.WorkflowVersion, want.Conversation = text, text
			case 4:
				want.ID += text
			}
			readAsWritten(t, stores, p, want, text)
		}
	}
	page, err := stores.Executions.List(t.Context(), p, store.ExecutionQuery{Page: store.Page{Size: 100}})
	if err != nil || page.Total != 5*len(texts) || len(page.Executions) != page.Total {
		t.Errorf("%d of %d are listed, %v", len(page.Executions), page.Total, err)
	}
	if _, err := stores.Executions.Get(t.Context(), p, "e0"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what is not there is read with the error %v", err)
	}
}

// readAsWritten makes an execution, one of whose texts is the given one, and reads it in all ways there are.
func readAsWritten(t *testing.T, stores store.Stores, p identity.Principal, want store.Execution, text string) {
	t.Helper()
	create := want
	if err := stores.Journal.Append(t.Context(), p, &store.Append{Execution: want.ID, Time: 1, Body: []byte("{}"),
		Create: &create}); err != nil {
		t.Fatal(err)
	}
	got, err := stores.Executions.Get(t.Context(), p, want.ID)
	if err != nil || got != want {
		t.Errorf("it is read as\n%+v, %v\nand was written as\n%+v", got, err, want)
	}
	// A strange text may make it be read without its rows.
	got, rows, whole, err := stores.Executions.GetWithRows(t.Context(), p, want.ID)
	if err != nil || got != want || whole != (len(rows) == 1) || !whole && !strings.Contains(text, "\x1f") || whole &&
		string(rows[0].Body) != "{}" {
		t.Errorf("with its rows it is read as\n%+v, %+v, %v, %v\nand was written as\n%+v", got, rows, whole, err, want)
	}
	page, err := stores.Executions.List(t.Context(), p, store.ExecutionQuery{WorkflowID: want.WorkflowID})
	if err != nil || page.Total != 1 || len(page.Executions) != 1 || page.Executions[0] != want {
		t.Errorf("it is listed as\n%+v, %v\nand was written as\n%+v", page, err, want)
	}
}
