package route

import (
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"tandem/identity"
)

// scopeOf is the extension of an operation that says which scope a token needs for it.
const scopeOf = "x-scope"

// Needs says which scope a token must have for an operation, where it is another one than the usual.
func Needs(op huma.Operation, scope identity.Scope) huma.Operation {
	if op.Extensions == nil {
		op.Extensions = map[string]any{}
	}
	op.Extensions[scopeOf] = string(scope)
	return op
}

// usualScope is the scope of an operation by who may call it: what everybody may change are answers to questions.
func usualScope(op *huma.Operation, allow []identity.Role) identity.Scope {
	switch {
	case op.Method == http.MethodGet || !Audits(op):
		return identity.ScopeRead
	case slices.Contains(allow, identity.Viewer):
		return identity.ScopeAnswer
	case slices.Contains(allow, identity.Operator):
		return identity.ScopeExecute
	case slices.Contains(allow, identity.Editor):
		return identity.ScopeEdit
	}
	return identity.ScopeAdmin
}

func scopeList(scopes []identity.Scope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}
