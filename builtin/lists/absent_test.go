package lists

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tandem/builtin/values"
	"tandem/payload"
)

// What a kind says that it needs is all that its list is found by, however the path to it is written.
func TestNeeds_HasWhatThePathLeadsTo(t *testing.T) {
	t.Parallel()
	type config struct {
		Path string `json:"path"`
	}
	needs := Needs(func(c config) ([]string, bool) { return []string{c.Path}, true })
	paths := []string{`orders`, ` orders `, `["orders"]`, `data.orders`, `data["orders"]`, `["data"].orders`, `data.data.orders`, `order list`, `["order list"]`, `data.order list`,
		`data["order list"]`, `orders[0].lines`, `data.orders.0.lines`, `it's`, `["a.b"]`, `data["a.b"]`, `data`, `Orders`, `orders.`, ``, `{{path}}`, `${path}`}
	inputs := []string{`"orders":%s`, `"data":{"orders":%s}`, `"data":{"data":{"orders":%s}}`, `"order list":%s`, `"data":{"order list":%s}`, `"it's":%s`, `"a.b":%s`, `"data":{"a.b":%s}`, `"data":%s`}
	for _, path := range paths {
		for _, shape := range inputs {
			input := json.RawMessage(`{"other":[9],` + fmt.Sprintf(shape, `[{"lines":[1,2]}]`) + `}`)
			set, err := payload.Encode(config{path})
			if err != nil {
				t.Fatal(err)
			}
			reads := needs(set)
			if reads == nil { // all of it
				continue
			}
			var kept []payload.Member
			for _, m := range payload.Members(input) {
				if reads.Has(m.Key) {
					kept = append(kept, m)
				}
			}
			all, err := values.ListInput(input, path)
			if err != nil {
				t.Fatal(err)
			}
			some, err := values.ListInput(payload.AppendObject(nil, kept), path)
			if err != nil || all.Absent != some.Absent || string(all.Value) != string(some.Value) {
				t.Errorf("%q finds %s in %s, and %s in what it needs, %v", path, all.Value, input, some.Value, err)
			}
			if reads.Has("other") || strings.Contains(path, "{{") || strings.Contains(path, "${") {
				t.Errorf("%q needs too much or too little", path)
			}
		}
	}
}
