package app

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/node"
	"tandem/plug"
)

// Kinds that an embedding program brings are known to the report before an upgrade, if it is the program that reports.
func TestReportUpgrade_Extensions(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir(), Extensions: []plug.Maker{madeOf(plug.Extension{Name: "mine", Kinds: []node.Kind{plainKind("EXTERNAL_ACTION.MINE")}})}}
	i, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	source, problems := i.check([]byte(`{"metadata": {"id": "w", "name": "w"}, "nodes": [
		{"id": "wait", "name": "wait", "description": "Waits.", "type": "FLOW", "subtype": "WAIT", "configurations": {"wait_type": "signal", "signal_name": "go", "timeout_seconds": 1000}},
		{"id": "own", "name": "own", "description": "Hands on.", "type": "EXTERNAL_ACTION", "subtype": "MINE"}],
		"connections": [{"id": "c", "from_node": "wait", "to_node": "own"}]}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if _, err := i.Save(t.Context(), Local(), source.Definition); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Start(t.Context(), Local(), "w", json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if u, err := ReportUpgrade(t.Context(), o); err != nil || !u.OK || u.Executions != 1 {
		t.Errorf("the program that brings the kind says %+v, %v", u, err)
	}
	o.Extensions = nil
	if u, err := ReportUpgrade(t.Context(), o); err != nil || u.OK || len(u.Groups) != 1 || !strings.Contains(strings.Join(u.Groups[0].Problems, ""), `no subtype "MINE"`) {
		t.Errorf("another program says %+v, %v", u, err)
	}
}
