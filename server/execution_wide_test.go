package server

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"tandem/route"
)

// A start whose inputs have very many names takes some multiple of their size to be read, kept and handed on: at every step no more
// than what the step holds.
func TestExecute_ManyNames(t *testing.T) { // not in parallel: it counts what the process allocates
	w := setup(t)
	w.admin("POST", route.Prefix+"/workflows", `{"metadata":{"id":"wide","name":"wide","description":"ABOUT"},"nodes":[
		{"id":"start","name":"start","description":"d","type":"TRIGGER","subtype":"MANUAL"},
		{"id":"one","name":"one","description":"d","type":"CALL","subtype":"EMPTY"},{"id":"two","name":"two","description":"d","type":"CALL","subtype":"EMPTY"}],
		"connections":[{"from_node":"start","to_node":"one"},{"from_node":"one","to_node":"two"}]}`).want(t, 201)
	inputs := make([]string, 30_000)
	for i := range inputs {
		inputs[i] = fmt.Sprintf(`"key%06d":"%s"`, i, strings.Repeat("v", 76))
	}
	body := `{"wait_seconds":60,"inputs":{` + strings.Join(inputs, ",") + `}}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w.admin("POST", route.Prefix+"/workflows/wide/execute", body).want(t, 200)
	runtime.ReadMemStats(&after)
	most := 48.0 // times the body; it was 66 to 71 with lists and buffers that grow as they are filled, and with copies of the body
	if raceEnabled {
		most = 58
	}
	times := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(body))
	t.Logf("%.1f times the body of %d bytes", times, len(body))
	if times > most {
		t.Errorf("a body of %d bytes takes %.0f times as much, more than %.0f", len(body), times, most)
	}
}
