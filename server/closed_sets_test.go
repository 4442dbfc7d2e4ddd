package server

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/engine"
	"tandem/identity"
)

// What the description of the API lists of a closed set is what there is of it: programs check what they know against the list.
func TestClosedSets(t *testing.T) {
	t.Parallel()
	statuses, roles := texts(engine.Statuses()), texts(identity.Roles())
	scopes := append(texts(identity.Scopes()), string(identity.ScopeLogin))
	for _, c := range []struct {
		of    reflect.Type
		field string
		want  []string
	}{
		{reflect.TypeFor[api.Execution](), "Status", statuses}, {reflect.TypeFor[api.ExecutionSummary](), "Status", statuses},
		{reflect.TypeFor[api.User](), "Roles", roles}, {reflect.TypeFor[api.Token](), "Scopes", scopes},
	} {
		f, _ := c.of.FieldByName(c.field)
		if diff := cmp.Diff(c.want, strings.Split(f.Tag.Get("enum"), ",")); diff != "" {
			t.Errorf("%s.%s (-want +got):\n%s", c.of, c.field, diff)
		}
	}
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, one := range list {
		out[i] = string(one)
	}
	return out
}
