package server

import (
	"bytes"
	"crypto/rand"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"tandem/identity"
	"tandem/route"
)

// TestExecutePlainly: a start is answered in the same way, to the byte, whether the framework has read it or not, and the plain ones
// are those that it need not read.
func TestExecutePlainly(t *testing.T) {
	t.Parallel()
	w := setup(t)
	def := `{"metadata":{"id":"m","name":"m","description":"d"},"nodes":[{"id":"start","name":"start","description":"d","type":"TRIGGER","subtype":"MANUAL"},{"id":"next","name":"next","description":"d","type":"CALL","subtype":"EMPTY"}],"connections":[{"from_node":"start","to_node":"next"}]}`
	w.admin("POST", route.Prefix+"/workflows", def).want(t, 201)
	plainly := func(path, body string, change func(*http.Request)) bool {
		r, err := http.NewRequest(http.MethodPost, path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(r)
		}
		r.Body = &route.KeptBody{Reader: bytes.NewReader([]byte(body)), Text: []byte(body)}
		_, plain := plainExecute(r)
		return plain
	}
	ids := regexp.MustCompile(`exec_[0-9A-Za-z]+`)
	for name, c := range map[string]struct {
		id, body string
		plain    bool
		status   int
		change   func(*http.Request)
	}{
		"Waited":       {body: `{"inputs":{"a":"<b> & \u00e9","n":1.50},"wait_seconds":30}`, plain: true, status: 200},
		"Spaces":       {body: ` { "wait_seconds" : 3e1 , "inputs" : { "a" : [ 1 , 2 ] } } `, plain: true, status: 200},
		"NotWaited":    {body: `{"inputs":{"a":1}}`, plain: true, status: 202},
		"Nothing":      {body: `{}`, plain: true, status: 202},
		"NoWorkflow":   {id: "<gone>&", body: `{"wait_seconds":1}`, plain: true, status: 404},
		"Agent":        {id: "agent:x", body: `{}`, plain: true, status: 404},
		"NoInputs":     {body: `{"inputs":null,"wait_seconds":30}`, status: 200},
		"WrongInputs":  {body: `{"inputs":[1]}`, status: 422},
		"TooLong":      {body: `{"wait_seconds":61}`, status: 422},
		"Negative":     {body: `{"wait_seconds":-1}`, status: 422},
		"WrongType":    {body: `{"wait_seconds":"30"}`, status: 422},
		"Unknown":      {body: `{"inputs":{},"more":1}`, status: 422},
		"OtherCase":    {body: `{"Inputs":{}}`, status: 202},
		"Twice":        {body: `{"inputs":{},"inputs":{}}`, plain: true, status: 422}, // is refused before
		"Escaped":      {body: `{"\u0069nputs":{"a":1}}`, status: 202},
		"Trigger":      {body: `{"trigger_node":"start","wait_seconds":30}`, status: 200},
		"WrongTrigger": {body: `{"trigger_node":"next"}`, status: 422},
		"NotJSON":      {body: `{"inputs":{}`, status: 400},
		"List":         {body: `[]`, status: 422},
		"Text":         {body: `inputs`, status: 400},
		"LongID":       {id: strings.Repeat("x", 129), body: `{}`, status: 422},
		"Query":        {id: "m/execute?a=1#", body: `{}`, status: 422},
		"Key":          {body: `{"inputs":{"a":1}}`, status: 202, change: func(r *http.Request) { r.Header.Set("Idempotency-Key", rand.Text()) }},
		"OtherType":    {body: `{}`, status: 415, change: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }},
		"OtherAnswer":  {body: `{}`, status: 202, change: func(r *http.Request) { r.Header.Set("Accept", "text/html") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := route.Prefix + "/workflows/" + strings.NewReplacer("<", "%3C", ">", "%3E", "&", "%26").Replace(c.id) + "/execute"
			if c.id == "" {
				path = route.Prefix + "/workflows/m/execute"
			}
			path, _, _ = strings.Cut(path, "#")
			if got := plainly(path, c.body, func(r *http.Request) {
				r.SetPathValue("id", c.id)
				if c.change != nil {
					c.change(r)
				}
			}); got != c.plain {
				t.Errorf("it is plain: %v", got)
			}
			ask := func(accept string) answer {
				a := w.ask(w.tokens[identity.Admin], http.MethodPost, path, strings.NewReader(c.body), func(r *http.Request) {
					r.Header.Set("Content-Type", "application/json")
					if accept != "" {
						r.Header.Set("Accept", accept)
					}
					if c.change != nil {
						c.change(r)
					}
				})
				a.header.Del("Date")
				a.header.Set("Location", ids.ReplaceAllString(a.header.Get("Location"), "ID"))
				a.body = ids.ReplaceAllString(a.body, "ID")
				return a
			}
			plain, framework := ask(""), ask("application/json;q=0.9") // which is not plain
			plain.want(t, c.status)
			if plain.status != framework.status || plain.body != framework.body || !maps.EqualFunc(plain.header, framework.header, func(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }) {
				t.Errorf("it is answered\n%d %s %v\nand by the framework\n%d %s %v", plain.status, plain.body, plain.header, framework.status, framework.body, framework.header)
			}
		})
	}
}
