package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/identity"
)

// executePlainly answers the starts that most are: inputs, maybe a time to wait, and nothing else. The framework reads a body twice, once
// to hold it against its schema and once for the operation; of these it is plain that they fit. All others are the framework's, and
// so is everything that there is to say against a request. The answers are the same.
func (s *Server) executePlainly(execute func(context.Context, identity.Principal, *executeInput) (*executeOutput, error)) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(c)
		in, ok := plainExecute(r)
		if !ok {
			next(c)
			return
		}
		ctx := c.Context()
		p := principalOf(ctx)
		out, err := execute(ctx, p, in)
		if err != nil {
			problem := s.problem(ctx, p, err)
			for name, values := range problem.headers {
				w.Header()[name] = values
			}
			s.sendPlainly(w, r, problem.Status, problemType, problem)
			return
		}
		if out.Location != "" {
			w.Header().Set("Location", out.Location)
		}
		s.sendPlainly(w, r, out.Status, "application/json", &out.Body)
	}
}

// plainExecute reads a start, if it is a plain one.
func plainExecute(r *http.Request) (*executeInput, bool) {
	body, whole := r.Body.(*keptBody)
	if !whole || r.URL.RawQuery != "" || len(r.Header["Idempotency-Key"]) > 0 {
		return nil, false
	}
	switch r.Header.Get("Content-Type") {
	case "", "application/json", "application/json; charset=utf-8":
	default:
		return nil, false
	}
	switch r.Header.Get("Accept") {
	case "", "*/*", "application/json":
	default:
		return nil, false
	}
	in := &executeInput{WorkflowPath: WorkflowPath{r.PathValue("id")}}
	if utf8.RuneCountInString(in.ID) > maxPlainID || !gjson.ValidBytes(body.text) {
		return nil, false
	}
	var want api.ExecuteRequest
	text := gjson.ParseBytes(body.text)
	plain := text.IsObject()
	text.ForEach(func(key, value gjson.Result) bool {
		switch {
		case key.Raw == `"inputs"` && value.IsObject():
			want.Inputs = json.RawMessage(value.Raw)
		case key.Raw == `"wait_seconds"` && value.Type == gjson.Number && value.Num >= 0 && value.Num <= 60:
			want.WaitSeconds = value.Num
		default:
			plain = false
		}
		return plain
	})
	in.Body = &want
	return in, plain
}

// maxPlainID is how long the id of a workflow may be that is started plainly.
const maxPlainID = 128

// sendPlainly sends an answer as the framework does.
func (s *Server) sendPlainly(w http.ResponseWriter, r *http.Request, status int, contentType string, v any) {
	var body bytes.Buffer
	if err := huma.DefaultJSONFormat.Marshal(&body, v); err != nil {
		panic(err) // a defect, which is told as one
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	if _, err := w.Write(body.Bytes()); err != nil {
		s.log.DebugContext(r.Context(), "nobody took the answer", "error", err)
	}
}
