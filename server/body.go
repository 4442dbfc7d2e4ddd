package server

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"tandem/payload"
)

// bodyLimits are those of the JSON in the body of a request. The body nests as deep as a value may, so whatever is in one of its
// fields can be kept.
func bodyLimits() payload.Limits { return payload.Limits{} }

// checkBody lets the reader of JSON look at a body before anything else does: what is not UTF-8 or beyond the limits is refused
// with the field that it stands in. That a text is not JSON at all is told by the framework.
func (s *Server) checkBody(c huma.Context, next func(huma.Context)) {
	wanted := c.Operation().RequestBody
	if wanted == nil || wanted.Content["application/json"] == nil {
		next(c)
		return
	}
	if err := c.SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.log.DebugContext(c.Context(), "the time for a body cannot be bounded", "error", err)
	}
	read := &bodyRead{humaContext: c}
	read.body, read.err = io.ReadAll(io.LimitReader(c.BodyReader(), maxBody+2)) // one more than the framework refuses
	if err := payload.Check(read.body, bodyLimits()); read.err == nil && len(read.body) > 0 && len(read.body) <= maxBody {
		if wrong, ok := errors.AsType[*payload.Error](err); ok && !wrong.Syntax {
			r, w := humago.Unwrap(c)
			s.refuse(w, r, s.problem(c.Context(), principalOf(c.Context()), wrongField(cmp.Or(wrong.Path, "body"), "%s", wrong.Reason)))
			return
		}
	}
	next(read)
}

// humaContext is embedded under a name that is not that of one of its methods.
type humaContext = huma.Context

// bodyRead is a request whose body has been read.
type bodyRead struct {
	humaContext
	body []byte
	err  error
}

// Unwrap is for the framework's adapters.
func (b *bodyRead) Unwrap() huma.Context { return b.humaContext }

// BodyReader implements huma.Context.
func (b *bodyRead) BodyReader() io.Reader {
	return io.MultiReader(bytes.NewReader(b.body), failing{b.err})
}

// failing is the end of a body: an error, or none.
type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}
