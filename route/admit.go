package route

import (
	"net/http"

	"tandem/identity"
)

// Admit finds out who makes a request that is not an operation of the API, and whether one of the roles is theirs. With the error that says that it is not, it
// returns who they are, as far as that is known.
func (s *Router) Admit(r *http.Request, allow ...identity.Role) (identity.Principal, error) {
	return s.admit(r.Context(), Authorization(r), allow)
}
