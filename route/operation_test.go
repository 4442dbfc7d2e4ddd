package route

import (
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

func TestOperation_NeedsRoles(t *testing.T) {
	t.Parallel()
	s := New(Options{Version: "test", Now: time.Now})
	for what, op := range map[string]huma.Operation{
		"roles":   {OperationID: "x", Method: "GET", Path: "/x", Summary: "x", Tags: []string{"x"}},
		"summary": {OperationID: "x", Method: "GET", Path: "/x", Tags: []string{"x"}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("an operation without %s was taken", what)
				}
			}()
			allow := Readers()
			if what == "roles" {
				allow = nil
			}
			s.declare(&op, allow)
		}()
	}
}
