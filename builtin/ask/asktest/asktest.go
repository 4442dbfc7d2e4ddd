// Package asktest is what tests of kinds that ask people share. Only tests import it.
package asktest

import (
	"testing"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/human"
	"tandem/node"
	"tandem/node/nodetest"
)

// Case is a configuration and an input of a kind, and what it asks.
type Case struct {
	// Kind is its subtype.
	Kind, Config, Input string
	// Says are paths of the request and what is there, as JSON; empty: nothing.
	Says map[string]string
}

// Asks runs a kind that must ask, and returns what it asks.
func Asks(t *testing.T, kinds nodetest.Kinds, kind string, call *node.Call) (request gjson.Result, wait node.Wait) {
	t.Helper()
	out, err := kinds.Run(t, "HUMAN_IN_THE_LOOP."+kind, call)
	if err != nil {
		t.Fatal(err)
	}
	wait, ok := out.(node.Wait)
	if !ok || wait.Ask == nil || wait.Ask.Purpose != human.PurposeNode || !wait.Until.IsZero() {
		t.Fatalf("%#v is not a question", out)
	}
	return gjson.ParseBytes(wait.Ask.Request), wait
}

// Run lets each kind ask.
func Run(t *testing.T, kinds nodetest.Kinds, cases map[string]Case) {
	t.Helper()
	for name, c := range cases { // order does not matter: each is for itself
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request, wait := Asks(t, kinds, c.Kind, nodetest.NewCall(t, c.Config, c.Input))
			for path, says := range c.Says { // order does not matter: all are looked at
				if got := request.Get(path).Raw; got != says {
					t.Errorf("%s is %s, want %s", path, got, says)
				}
			}
			since := nodetest.Start().UnixMilli()
			if memo := gjson.ParseBytes(wait.Memo); memo.Get("waiting_since").Int() != since ||
				memo.Get("timeout_at").Int() != since+1000*request.Get("timeout_seconds").Int() {
				t.Errorf("memo %s", wait.Memo)
			}
		})
	}
}

// Refuses runs a kind that must refuse its configuration, with the path of what is wrong.
func Refuses(t *testing.T, kinds nodetest.Kinds, kind, config string, code fault.Code, path string) {
	t.Helper()
	out, err := kinds.Run(t, "HUMAN_IN_THE_LOOP."+kind, nodetest.NewCall(t, config, `{}`))
	if f := fault.From(err); err == nil || f.Code != code || f.Details["path"] != path {
		t.Errorf("%v, %v", out, err)
	}
}
