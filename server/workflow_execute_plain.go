package server

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/identity"
	"tandem/payload"
	"tandem/route"
)

// executePlainly answers the most common starts: inputs, maybe a time to wait, and nothing else. The framework reads a body twice, once
// to check it against its schema and once for the operation; these need no check. All others go to the framework, and so do requests with
// errors. The answers are the same.
func (s *Server) executePlainly(
	execute func(context.Context, identity.Principal, *executeInput) (*executeOutput, error),
) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(c)
		in, ok := plainExecute(r)
		if !ok {
			next(c)
			return
		}
		ctx := c.Context()
		p := route.PrincipalOf(ctx)
		out, err := execute(ctx, p, in)
		if err == nil {
			err = s.Settle(ctx)
		}
		if err != nil {
			s.RefusePlainly(ctx, w, r, p, err)
			return
		}
		if out.Location != "" {
			w.Header().Set("Location", out.Location)
		}
		s.SendPlainly(w, r, out.Status, "application/json", route.EncodePlainly(&out.Body))
	}
}

// plainExecute reads a start, if it is a plain one.
func plainExecute(r *http.Request) (*executeInput, bool) {
	body, whole := r.Body.(*route.KeptBody)
	if !whole || r.URL.RawQuery != "" || len(r.Header["Idempotency-Key"]) > 0 {
		return nil, false
	}
	switch r.Header.Get("Content-Type") {
	case "", "application/json", "application/json; charset=utf-8":
	default:
		return nil, false
	}
	if !route.TakesJSON(r) {
		return nil, false
	}
	in := &executeInput{WorkflowPath: WorkflowPath{r.PathValue("id")}}
	if utf8.RuneCountInString(in.ID) > maxPlainID || !gjson.ValidBytes(body.Text) {
		return nil, false
	}
	var want api.ExecuteRequest
	plain := bytes.HasPrefix(body.Text, []byte("{"))
	payload.EachField(body.Text, func(key, value []byte) bool { // which are parts of the body
		switch {
		case string(key) == "inputs" && value[0] == '{':
			want.Inputs = value
		case string(key) == "wait_seconds":
			var err error
			want.WaitSeconds, err = strconv.ParseFloat(string(value), 64) // among values of JSON only a number is one
			plain = err == nil && want.WaitSeconds >= 0 && want.WaitSeconds <= 60
		default:
			plain = false
		}
		return plain
	})
	in.Body = &want
	return in, plain
}

// maxPlainID is how long the id of a workflow may be in a plain start.
const maxPlainID = 128
