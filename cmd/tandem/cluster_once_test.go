package main

import (
	"context"
	"strings"
	"testing"
)

// tickFlow is started by the clock every second, and says so.
const tickFlow = `
metadata: {id: tick, name: tick, description: d}
nodes:
  - {id: clock, description: d, type: TRIGGER, subtype: CRON, configurations: {cron_expression: "* * * * * *"}}
  - {id: post, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "SERVICE/tick/{{clock.outputs.scheduled_time}}", on_unknown: fail}}
connections:
  - {id: c1, from_node: clock, to_node: post}
`

// testOnce: what the clock starts is started once in the whole cluster, whichever of the servers is killed, and the other one goes on with it.
func (i *installation) testOnce(t *testing.T) {
	i.t = t
	ctx := t.Context()
	if _, err := i.clients[1].Deploy(ctx, "tick"); err != nil {
		t.Fatal(err)
	}
	i.awaitTicks(3)
	for _, victim := range servers {
		i.kill(victim)
		i.awaitTicks(len(i.ticks()) + 3) // by the one that is left
		i.start(victim)
	}
	if _, err := i.clients[0].Undeploy(ctx, "tick"); err != nil {
		t.Fatal(err)
	}
	for at, times := range i.ticks() {
		if times != 1 {
			t.Errorf("the clock has started %d executions at %s", times, at)
		}
	}
}

// ticks are the times at which the clock has started something, and how often.
func (i *installation) ticks() map[string]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	ticks := map[string]int{}
	for path, times := range i.done {
		if at, ok := strings.CutPrefix(path, "/tick/"); ok {
			ticks[at] += times
		}
	}
	return ticks
}

// awaitTicks waits until the clock has come to so many times.
func (i *installation) awaitTicks(n int) {
	i.t.Helper()
	for len(i.ticks()) < n {
		select {
		case <-i.more:
		case <-i.t.Context().Done():
			i.t.Fatal(context.Cause(i.t.Context()))
		}
	}
}
