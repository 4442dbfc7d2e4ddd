package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
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
			s.refusePlainly(ctx, w, r, p, err)
			return
		}
		if out.Location != "" {
			w.Header().Set("Location", out.Location)
		}
		s.sendPlainly(w, r, out.Status, "application/json", encodePlainly(&out.Body))
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
	if !takesJSON(r) {
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

// takesJSON says that a request wants its answer in JSON, in plain words: others are for the framework to understand.
func takesJSON(r *http.Request) bool {
	switch r.Header.Get("Accept") {
	case "", "*/*", "application/json":
		return true
	}
	return false
}

// encodePlainly encodes an answer as the framework does.
func encodePlainly(v any) []byte {
	var body bytes.Buffer
	if err := huma.DefaultJSONFormat.Marshal(&body, v); err != nil {
		panic(err) // a defect, which is told as one
	}
	return body.Bytes()
}

// refusePlainly sends an error as the framework does.
func (s *Server) refusePlainly(ctx context.Context, w http.ResponseWriter, r *http.Request, p identity.Principal, err error) {
	problem := s.problem(ctx, p, err)
	for name, values := range problem.headers {
		w.Header()[name] = values
	}
	s.sendPlainly(w, r, problem.Status, problemType, encodePlainly(problem))
}

// sendPlainly sends an answer as the framework does. It says how long the answer is, so that it need not be sent in pieces.
func (s *Server) sendPlainly(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		s.log.DebugContext(r.Context(), "nobody took the answer", "error", err)
	}
}
