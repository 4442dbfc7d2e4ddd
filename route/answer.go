package route

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"tandem/identity"
)

// Send writes a whole answer.
func (s *Router) Send(w http.ResponseWriter, r *http.Request, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	if _, err := w.Write(body); err != nil {
		s.Log.DebugContext(r.Context(), "nobody took the answer", "error", err)
	}
}

// TakesJSON says that a request wants its answer in JSON, in plain words: others are for the framework to understand.
func TakesJSON(r *http.Request) bool {
	switch r.Header.Get("Accept") {
	case "", "*/*", "application/json":
		return true
	}
	return false
}

// usualAnswer is how long an answer may be before more room is made for it.
const usualAnswer = 1 << 10

// jsonFormat is how answers are written: as the framework does, unless a body knows how to write itself.
func jsonFormat() huma.Format {
	format := huma.DefaultJSONFormat
	general := format.Marshal
	format.Marshal = func(w io.Writer, v any) error {
		own, ok := v.(interface{ AppendJSON(out []byte) []byte })
		if !ok {
			return general(w, v)
		}
		_, err := w.Write(append(own.AppendJSON(nil), '\n'))
		return err
	}
	return format
}

// EncodePlainly encodes an answer as the framework does.
func EncodePlainly(v any) []byte {
	body := bytes.NewBuffer(make([]byte, 0, usualAnswer))
	if err := huma.DefaultJSONFormat.Marshal(body, v); err != nil {
		panic(err) // a defect, which is answered as one
	}
	return body.Bytes()
}

// RefusePlainly sends an error as the framework does.
func (s *Router) RefusePlainly(ctx context.Context, w http.ResponseWriter, r *http.Request, p identity.Principal, err error) {
	problem := s.Problem(ctx, p, err)
	for name, values := range problem.Headers {
		w.Header()[name] = values
	}
	s.SendPlainly(w, r, problem.Status, ProblemType, EncodePlainly(problem))
}

// largeAnswer is from which size on an answer has to say how long it is. Of smaller ones net/http says so, which costs less: headers are
// a map, and with the ninth of them it grows.
const largeAnswer = 2 << 10

// jsonAnswer is the content type of nearly all answers, shared by them as in [protect].
var jsonAnswer = []string{"application/json"} // read-only

// SendPlainly sends an answer as the framework does. It says how long the answer is, so that it need not be sent in pieces.
func (s *Router) SendPlainly(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	if contentType == jsonAnswer[0] {
		w.Header()["Content-Type"] = jsonAnswer
	} else {
		w.Header().Set("Content-Type", contentType)
	}
	if len(body) >= largeAnswer {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		s.Log.DebugContext(r.Context(), "nobody took the answer", "error", err)
	}
}
