package route

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"tandem/identity"
)

// Admit finds out who makes a request that is not an operation of the API, whether one of the roles is theirs, and whether what they came
// with may act on executions. With the error that says that it is not, it returns who they are, as far as that is known.
func (s *Router) Admit(r *http.Request, allow ...identity.Role) (identity.Principal, error) {
	op := &huma.Operation{Method: r.Method, Extensions: map[string]any{scopeOf: string(identity.ScopeExecute)}}
	return s.admit(r.Context(), op, Authorization(r), allow)
}
